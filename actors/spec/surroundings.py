"""What surrounds a worker's process: limits, priorities, groups, stdin and its control group; pure."""

from __future__ import annotations

import re
import resource
from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields
from types import MappingProxyType

from ..errors import Problem
from .validation import Policy, setting, settings_of

_SIZE = re.compile(r"(?P<number>[0-9]{1,15})(?P<unit>[KMGT]?)i?B?", re.IGNORECASE)
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_UMASK = re.compile(r"0?o?[0-7]{3}")
_CPUS = re.compile(r"[0-9]{1,4}(\.[0-9]{1,3})?")
_IONICE = re.compile(r"(?P<kind>idle|best-effort|realtime)(?::(?P<level>[0-7]))?")
IO_CLASSES = MappingProxyType({"realtime": 1, "best-effort": 2, "idle": 3})

UNLIMITED = "unlimited"
NULL = "null"
"""`stdin` of a worker that reads nothing."""


def size(value: int | str) -> int | None:
    """A number of bytes, also with a unit (`512M`); None if it is not one."""
    found = _SIZE.fullmatch(str(value))
    return None if found is None else int(found["number"]) << _UNITS[found["unit"].upper()]


Limit = int | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rlimits(Policy):
    """The resource limits of the process: a number, "unlimited", or "SOFT:HARD"; sizes also as "512M"."""

    nofile: Limit = setting(None, "Open descriptors.", least=0)
    nproc: Limit = setting(None, "Processes and threads of its user.", least=0)
    core: Limit = setting(None, "Bytes of a core dump.", least=0)
    address_space: Limit = setting(None, "Bytes of its address space.", key="as", least=0)
    data: Limit = setting(None, "Bytes of its data segment.", least=0)
    stack: Limit = setting(None, "Bytes of its stack.", least=0)
    memlock: Limit = setting(None, "Bytes that it may lock in memory.", least=0)
    fsize: Limit = setting(None, "Bytes of a file that it writes.", least=0)
    cpu: Limit = setting(None, "Seconds of CPU time.", least=0)
    nice: Limit = setting(None, "How far it may lower its niceness: 20 minus the niceness.", least=0)
    rtprio: Limit = setting(None, "Its highest real-time priority.", least=0)
    sigpending: Limit = setting(None, "Signals that may wait for it.", least=0)
    msgqueue: Limit = setting(None, "Bytes of POSIX message queues.", least=0)

    def conflicts(self, wrong: Collection[str]) -> Iterator[Problem]:
        """Values that are not limits."""
        for name, value in self._given():
            if name in wrong:
                continue
            pair = _pair(value)
            if pair is None:
                reason = 'must be a number, a size such as "512M", "unlimited" or "SOFT:HARD"'
                yield Problem(name, reason, value)
            elif _exceeds(*pair):
                yield Problem(name, "has a soft limit above its hard limit", value)

    def pairs(self) -> dict[int, tuple[int, int]]:
        """The soft and the hard limit, by the number of the resource."""
        return {_number(self, name): _pair(value) or (0, 0) for name, value in self._given()}

    def names(self) -> dict[int, str]:
        """The keys of the limits that are set, by the number of the resource."""
        return {_number(self, name): settings_of(type(self))[name].key for name, _ in self._given()}

    def _given(self) -> list[tuple[str, int | str]]:
        values = ((each.name, getattr(self, each.name)) for each in fields(self))
        return [(name, value) for name, value in values if value is not None]


def _number(limits: Rlimits, name: str) -> int:
    number: int = getattr(resource, f"RLIMIT_{settings_of(type(limits))[name].key.upper()}")
    return number


def _pair(value: int | str) -> tuple[int, int] | None:
    soft, _, hard = str(value).partition(":")
    one, other = _one(soft), _one(hard or soft)
    return None if one is None or other is None else (one, other)


def _one(text: str) -> int | None:
    return resource.RLIM_INFINITY if text == UNLIMITED else size(text)


def _exceeds(soft: int, hard: int) -> bool:
    infinity = resource.RLIM_INFINITY
    return hard != infinity and (soft == infinity or soft > hard)


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupPolicy(Policy):
    """The control group (version 2) of each of its processes, with all that the process starts."""

    memory_max: Limit = setting(None, 'The most memory, such as "512M"; above it the kernel kills.', least=1)
    memory_high: Limit = setting(None, "The memory above which the kernel slows it down.", least=1)
    cpu_max: float | str | None = setting(None, "The most CPU time, in cores: 0.5, 2.", above=0)
    pids_max: int | None = setting(None, "The most processes and threads.", least=1)

    def conflicts(self, wrong: Collection[str]) -> Iterator[Problem]:
        """Values that are not sizes."""
        for name in {"memory_max", "memory_high"} - set(wrong):
            value = getattr(self, name)
            if value is not None and size(value) is None:
                yield Problem(name, 'must be a number of bytes, or a size such as "512M"', value)
        if isinstance(self.cpu_max, str) and not _CPUS.fullmatch(self.cpu_max):
            yield Problem("cpu_max", "must be a number of cores, such as 0.5", self.cpu_max)

    def files(self) -> dict[str, str]:
        """What to write into which file of the control group."""
        written: dict[str, str] = {}
        for name in ("memory_max", "memory_high"):
            if (value := getattr(self, name)) is not None:
                written[name.replace("_", ".")] = str(size(value))
        if self.cpu_max is not None:
            written["cpu.max"] = f"{max(1000, round(float(self.cpu_max) * 100_000))} 100000"
        if self.pids_max is not None:
            written["pids.max"] = str(self.pids_max)
        return written


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings(Policy):
    """What the supervisor sets up for a process before it begins."""

    umask: str | None = setting(None, 'The permissions that new files do not get, in octal: "027".')
    nice: int | None = setting(
        None, "Its niceness; below that of the supervisor needs privileges.", least=-20, most=19
    )
    ionice: str | None = setting(
        None,
        'Its priority for disks: "idle", "best-effort", "best-effort:0" to "best-effort:7", "realtime:0" …',
    )
    oom_score_adj: int | None = setting(
        None, "How likely the kernel kills it for lack of memory; -1000: never.", least=-1000, most=1000
    )
    groups: tuple[str, ...] | None = setting(
        None, "Its supplementary groups; by default those of its user. Only root may set them."
    )
    stdin: str = setting(NULL, 'What it reads from its standard input: "null", or a file.')
    rlimits: Rlimits | None = setting(None)
    cgroup: CgroupPolicy | None = setting(None)

    def conflicts(self, wrong: Collection[str]) -> Iterator[Problem]:
        """Values that do not have the form of their settings."""
        if "umask" not in wrong and self.umask is not None and not _UMASK.fullmatch(self.umask):
            yield Problem("umask", 'must be three octal digits, such as "027"', self.umask)
        if "ionice" not in wrong and self.ionice is not None:
            found = _IONICE.fullmatch(self.ionice)
            if found is None or (found["kind"] == "idle" and found["level"]):
                reason = 'must be "idle", "best-effort", "best-effort:0" to ":7" or "realtime:0" to ":7"'
                yield Problem("ionice", reason, self.ionice)
        if "groups" not in wrong and self.groups is not None and not all(self.groups):
            yield Problem("groups", "contains an empty name", self.groups)
        if "stdin" not in wrong and (not self.stdin or "\0" in self.stdin):
            yield Problem("stdin", 'must be "null" or a file', self.stdin)

    @property
    def is_settled(self) -> bool:
        """Whether the process has to set something itself, before it executes its program."""
        return any(getattr(self, name) is not None for name in _SETTLED)

    @property
    def limits_descriptors(self) -> bool:
        """Whether it has a limit of descriptors of its own."""
        return self.rlimits is not None and self.rlimits.nofile is not None

    @property
    def mask(self) -> int | None:
        """The umask as a number."""
        return None if self.umask is None else int(self.umask.replace("o", ""), 8)

    @property
    def io_priority(self) -> int | None:
        """The priority for disks, as the kernel takes it."""
        found = None if self.ionice is None else _IONICE.fullmatch(self.ionice)
        return None if found is None else IO_CLASSES[found["kind"]] << 13 | int(found["level"] or 4)


_SETTLED = ("umask", "nice", "ionice", "oom_score_adj", "groups", "rlimits")
