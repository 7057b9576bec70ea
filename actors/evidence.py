"""Pure: what a process leaves behind when it ends, beside its exit status."""

from __future__ import annotations

from dataclasses import dataclass

Line = tuple[str, str]
"""A line of output: `out` or `err`, and what was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a process used, by the kernel's account at its end."""

    user_ms: int
    system_ms: int
    peak_rss_kb: int
    peak_is_a_bound: bool = False
    """The kernel hands the peak of whoever starts a process on to it: it used no more than this."""
    major_faults: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """Which code under which configuration; short hashes."""

    code: str = ""
    configuration: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remains:
    """Everything that is known of an ended process, gathered when it was reaped."""

    pid: int | None = None
    usage: Spent | None = None
    output: tuple[Line, ...] = ()
    """The last lines that it wrote, oldest first."""
    last_words: str = ""
    """What `faulthandler` or the runner wrote: stacks, the exception that ended it."""
    sent: int | None = None
    """The last signal that we sent to end it."""
    oom_kills: int | None = None
    """How many processes of our cgroup were killed for lack of memory while it lived; None: not known."""
    memory_limit_kb: int | None = None
    """The most memory that it could have had, as far as is known."""
    fingerprint: Fingerprint = Fingerprint()
