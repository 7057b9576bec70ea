"""How many descriptors this process may open, and how many the programs that it starts.

A supervisor of many workers needs more than the usual soft limit of 1,024. Its workers must not inherit
the higher one: programs that use `select`, or close every possible descriptor, rely on the low limit.
"""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Callable
from contextlib import suppress

MARGIN = 64
"""How many descriptors other threads may open while a program is started."""

RESERVE = 32
"""How many descriptors no worker gets: the database, the control socket and the commands need some."""

PER_WORKER = 5
"""Two pipes, a pidfd, a channel and the file for stacks, for a Python worker; a command needs three."""

_given: list[tuple[int, int]] = []
"""The limits before `raise_limit`; empty while they are unchanged."""


def raise_limit() -> None:
    """Raise the soft limit of this process to the hard one. Not for a host's process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    with suppress(OSError, ValueError):  # the kernel allows fewer than the hard limit says
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        _given[:] = [(soft, hard)]


def with_given_limit(start: Callable[[], int], newest: int) -> int:
    """Start a program with the limits that this process was started with; its pid.

    posix_spawn cannot set limits, so the program inherits them: they are lowered for this process while
    it starts the program. That affects nothing as long as descriptors with low numbers are free. If this
    process holds more than the low limit, the program gets it a moment after its start.

    Args:
        start: starts the program.
        newest: a descriptor that was opened just now; the kernel gives out the lowest free number.
    """
    if not _given:
        return start()
    soft, hard = _given[0]
    if newest + MARGIN >= soft:
        pid = start()
        give_back_limit(pid)
        return pid
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    try:
        return start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def give_back_limit(pid: int) -> None:
    """Give a program that was just started the limits that this process was started with."""
    if _given:
        with suppress(OSError):  # it has ended already, or belongs to another user
            resource.prlimit(pid, resource.RLIMIT_NOFILE, _given[0])


def keep_reserve(newest: int) -> None:
    """Refuse a start that would take the last descriptors.

    Args:
        newest: a descriptor that was opened just now; the kernel gives out the lowest free number.

    Raises:
        OSError: only the reserve is left.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and newest + _reserve(soft) >= soft:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def room_for_workers() -> int | None:
    """How many workers this process has descriptors for; None: any number."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return None
    used = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else RESERVE
    return max(0, (soft - used - _reserve(soft)) // PER_WORKER)


def _reserve(limit: int) -> int:
    """How many descriptors of this limit stay free; fewer where there are few."""
    return min(RESERVE, limit // 8)
