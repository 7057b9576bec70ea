"""Pure: which deaths are the same crash, and how often it happened.

Two deaths are the same crash when they were found to be of the same kind, ended by the same
code or signal, and the same functions led there. Line numbers, addresses, values and times
differ from death to death and do not count. Starts that failed are told apart by the system's
words, without the paths in them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

import msgspec

from .death import Cause, Exit
from .findings import Finding
from .stack_traces import read

LENGTH = 12
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
OUTER_FRAMES = 4
"""A hung worker is caught anywhere in its loop; how it came there stays the same."""


def crash_of(finding: Finding, cause: Cause, exit_: Exit, last_words: str, detail: str = "") -> str:
    """The fingerprint of a crash; the detail is that of a start that failed."""
    trace = read(last_words)
    if finding is Finding.NOT_STARTED:
        parts = [finding, cause, _QUOTED.sub("", detail)]
    elif finding is Finding.HUNG:
        parts = [finding, cause, *(frame.name for frame in trace.frames[:OUTER_FRAMES])]
    else:
        parts = [finding, cause, str(exit_), trace.kind, trace.fatal, *(frame.name for frame in trace.frames)]
    return hashlib.blake2b("\n".join(parts).encode("utf-8", "replace")).hexdigest()[:LENGTH]


class CrashGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The same crash, every time that it happened."""

    crash: str
    finding: Finding
    sentence: str
    """Of the latest time."""
    times: int
    first_wall_ms: int
    last_wall_ms: int
    last_generation: int


class Crashed(msgspec.Struct, frozen=True):
    """One death, as far as grouping needs it."""

    crash: str
    finding: Finding
    sentence: str
    at_wall_ms: int
    generation: int


def grouped(newest_first: Iterable[Crashed]) -> tuple[CrashGroup, ...]:
    """The groups, the one that happened last first."""
    groups: dict[str, list[Crashed]] = {}
    for crashed in newest_first:
        groups.setdefault(crashed.crash, []).append(crashed)
    return tuple(
        CrashGroup(
            crash=crash,
            finding=members[0].finding,
            sentence=members[0].sentence,
            times=len(members),
            first_wall_ms=members[-1].at_wall_ms,
            last_wall_ms=members[0].at_wall_ms,
            last_generation=members[0].generation,
        )
        for crash, members in groups.items()
    )
