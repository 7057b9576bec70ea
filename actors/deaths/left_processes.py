"""Pure: what it means that a worker ended and left processes behind."""

from __future__ import annotations

from collections.abc import Collection

from rekindle.worker.plain_text import span

from .death import Exit

QUICK_MS = 10_000
"""A program that ends well sooner than this, and leaves processes, probably daemonises."""

AT_ONCE_MS = 2000
"""A program that ends well sooner than this may daemonise, if it is not known what it leaves."""


def daemon_hint(exit_: Exit, lived_ms: int, left: Collection[int] | None) -> str:
    """What to say of a worker that probably daemonises, about `it`; empty for any other.

    Args:
        exit_: how it ended.
        lived_ms: how long it lived.
        left: the processes that it left; None if these were not looked for.
    """
    if not exit_.clean:
        return ""
    if left is None and lived_ms < AT_ONCE_MS:
        return "ended well right after its start: a program that daemonises must run in the foreground."
    if left and lived_ms < QUICK_MS:
        what = f"exited with 0 after {span(lived_ms)} and left {listed(left)}"
        return f"{what}: does it daemonise? Run it in the foreground."
    return ""


def listed(pids: Collection[int]) -> str:
    """Processes in words."""
    numbers = ", ".join(map(str, sorted(pids)))
    return f"process {numbers}" if len(pids) == 1 else f"processes {numbers}"
