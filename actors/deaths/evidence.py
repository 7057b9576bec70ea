"""Pure: what a process leaves behind when it ends, beside its exit status."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

Line = tuple[str, str]
"""A line of output: `out` or `err`, and what was written."""

Versions = Mapping[str, str]
"""The version of each worker that somebody looked at, by its id."""


def no_versions() -> Versions:
    """Nobody has looked."""
    return MappingProxyType({})


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What a process used, by the kernel's account at its end."""

    user_ms: int
    system_ms: int
    peak_rss_kb: int
    peak_is_a_bound: bool = False
    """The kernel hands the peak of whoever starts a process on to it: it used no more than this."""
    major_faults: int = 0


class Fingerprint(msgspec.Struct, frozen=True, kw_only=True):
    """Which code under which configuration; short hashes."""

    code: str = ""
    """Empty where a file of it could not be read."""
    configuration: str = ""

    @property
    def version(self) -> str | None:
        """Both in one word; None where nothing is known."""
        return f"{self.code}-{self.configuration}" if self.configuration else None


def changed(old: str | None, new: str | None) -> str | None:
    """What differs between two versions, in words; None if nothing does or it is not known.

    The old one may have failed because its code could not be read. A new one that cannot be
    read is no reason to try anything.
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
    """Whether the code could be read when this version was looked up."""
    return not version.startswith("-")


class Remains(msgspec.Struct, frozen=True, kw_only=True):
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
