"""Pure: what a process leaves behind when it ends, besides its exit status."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

Line = tuple[str, str]
"""A line of output: `out` or `err`, and the text."""

Versions = Mapping[str, str]
"""The version of each worker that was read, by id."""


def no_versions() -> Versions:
    """No version was read."""
    return MappingProxyType({})


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What a process used, as the kernel reports at its end."""

    user_ms: int
    system_ms: int
    peak_rss_kb: int
    peak_is_a_bound: bool = False
    """A process inherits the peak of its parent, so this is only an upper bound."""
    major_faults: int = 0


class Fingerprint(msgspec.Struct, frozen=True, kw_only=True):
    """Short hashes of a worker's code and configuration."""

    code: str = ""
    """Empty if a file could not be read."""
    configuration: str = ""

    @property
    def version(self) -> str | None:
        """Both in one word; None if unknown."""
        return f"{self.code}-{self.configuration}" if self.configuration else None


def changed(old: str | None, new: str | None) -> str | None:
    """What differs between two versions, in words; None if nothing does or it is not known.

    The old version may have failed because its code could not be read. If the new code cannot be
    read, there is no reason to restart.
    """
    if old is None or new is None:
        return None
    (old_code, _, old_configuration), (code, _, configuration) = old.partition("-"), new.partition("-")
    if not code:
        return None
    code_changed, configuration_changed = code != old_code, configuration != old_configuration
    if code_changed and configuration_changed:
        return "its code and its configuration changed"
    if code_changed:
        return "its code changed"
    return "its configuration changed" if configuration_changed else None


def tells_of_code(version: str) -> bool:
    """Whether the code of this version could be read."""
    return not version.startswith("-")


class Remains(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of an ended process, collected when it was reaped."""

    pid: int | None = None
    usage: Spent | None = None
    output: tuple[Line, ...] = ()
    """The last lines that it wrote, oldest first."""
    last_words: str = ""
    """What `faulthandler` or the runner wrote: stacks, the exception that ended it."""
    sent: int | None = None
    """The last signal that we sent to end it."""
    oom_kills: int | None = None
    """Out-of-memory kills in the cgroup during its life; None: not known."""
    counted_alone: bool = False
    """Whether that cgroup contained this process and what it started, and nothing else."""
    memory_limit_kb: int | None = None
    """The memory that was available to it, if known."""
    fingerprint: Fingerprint = Fingerprint()
    begun_jobs: tuple[tuple[int, int], ...] | None = None
    """The number and attempt of the jobs whose execution began last; None: not known."""
    left: tuple[int, ...] | None = None
    """The processes that it left behind, which were ended; None: these were not looked for."""
