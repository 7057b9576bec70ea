"""Pure: which deaths are the same crash, and how often it happened.

Two deaths are the same crash if they have the same finding, exit code or signal, and functions on
the stack. Line numbers, addresses, values and times are ignored. Failed starts are distinguished by
the error of the operating system, without its paths.
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
"""A hung worker is caught anywhere in its loop, so only the outer frames are compared."""


def crash_of(finding: Finding, cause: Cause, exit_: Exit, last_words: str, detail: str = "") -> str:
    """The fingerprint of a crash; `detail` is the error of a failed start."""
    trace = read(last_words)
    if finding is Finding.NOT_STARTED:
        parts = [finding, cause, _QUOTED.sub("", detail)]
    elif finding in (Finding.HUNG, Finding.UNHEALTHY):
        parts = [finding, cause, *(frame.name for frame in trace.frames[:OUTER_FRAMES])]
    else:
        parts = [finding, cause, str(exit_), trace.kind, trace.fatal, *(frame.name for frame in trace.frames)]
    return hashlib.blake2b("\n".join(parts).encode("utf-8", "replace")).hexdigest()[:LENGTH]


class CrashGroup(msgspec.Struct, frozen=True, kw_only=True):
    """All occurrences of one crash."""

    crash: str
    finding: Finding
    sentence: str
    """Of the latest occurrence."""
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
    """The groups, the latest first."""
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
