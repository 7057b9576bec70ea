"""Which of a worker's surroundings this machine, and this user, cannot set up."""

from __future__ import annotations

import os
import platform
import resource
from collections.abc import Iterator
from pathlib import Path

from ...errors import Problem
from ...spec.surroundings import NULL, CgroupPolicy, Rlimits, Surroundings
from ..cgroups.hierarchy import find
from .settlement import IOPRIO_SET, known_group

SETGID, SETUID, SYS_ADMIN, SYS_NICE, SYS_RESOURCE = 6, 7, 21, 23, 24
_NAMES = {
    SETGID: "CAP_SETGID",
    SETUID: "CAP_SETUID",
    SYS_NICE: "CAP_SYS_NICE",
    SYS_RESOURCE: "CAP_SYS_RESOURCE",
}


class Machine:
    """What this process may do, and the values from which it starts."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._capabilities = int(_field(proc / "self" / "status", "CapEff:") or "0", 16)
        self.oom_score_adj = int(_text(proc / "self" / "oom_score_adj") or "0")
        self.most_descriptors = int(_text(proc / "sys" / "fs" / "nr_open") or "0")
        allowed = 20 - resource.getrlimit(resource.RLIMIT_NICE)[0]
        own = min(os.getpriority(os.PRIO_PROCESS, 0), allowed)
        self.least_nice = -20 if self.may(SYS_NICE) else own

    def may(self, *capabilities: int) -> bool:
        """Whether it has one of these capabilities."""
        return any(self._capabilities >> number & 1 for number in capabilities)


def abilities() -> dict[str, object]:
    """What this machine, and this user, can set up for workers; for programs that read it."""
    machine, found = Machine(), find()
    place = None if isinstance(found, str) else found
    return {
        "user": machine.may(SETUID),
        "groups": machine.may(SETGID),
        "least_nice": machine.least_nice,
        "least_oom_score_adj": -1000 if machine.may(SYS_RESOURCE) else machine.oom_score_adj,
        "raises_hard_limits": machine.may(SYS_RESOURCE),
        "cgroup": None if place is None else str(place.base),
        "cgroup_controllers": [] if place is None else sorted(place.controllers),
        "cgroup_problem": found if isinstance(found, str) else None,
    }


def lacking(wanted: Surroundings, machine: Machine) -> Iterator[Problem]:
    """What cannot be set up, by its key."""
    yield from _priorities(wanted, machine)
    if wanted.rlimits is not None:
        yield from _limits(wanted.rlimits, machine)
    if wanted.groups is not None:
        yield from _groups(wanted.groups, machine)
    if wanted.cgroup is not None and (reason := _no_cgroup(wanted.cgroup)) is not None:
        yield Problem("cgroup", reason)
    if wanted.stdin != NULL and not os.path.exists(wanted.stdin):
        yield Problem("stdin", f'there is no file "{wanted.stdin}"')


def cannot(capability: int) -> str:
    """The sentence about a capability that this process does not have."""
    return f"this machine cannot: the supervisor needs root's rights for it ({_NAMES[capability]})"


def _priorities(wanted: Surroundings, machine: Machine) -> Iterator[Problem]:
    if wanted.nice is not None and wanted.nice < machine.least_nice:
        yield Problem("nice", cannot(SYS_NICE))
    if wanted.ionice is not None:
        if platform.machine() not in IOPRIO_SET:
            yield Problem("ionice", f"this machine cannot: not implemented for {platform.machine()}")
        elif wanted.ionice.startswith("realtime") and not machine.may(SYS_NICE, SYS_ADMIN):
            yield Problem("ionice", cannot(SYS_NICE))
    score = wanted.oom_score_adj
    if score is not None and score < machine.oom_score_adj and not machine.may(SYS_RESOURCE):
        yield Problem("oom_score_adj", cannot(SYS_RESOURCE))


def _limits(wanted: Rlimits, machine: Machine) -> Iterator[Problem]:
    names = wanted.names()
    for number, (_, hard) in wanted.pairs().items():
        most = resource.getrlimit(number)[1]
        key = f"rlimits.{names[number]}"
        if _is_above(hard, most) and not machine.may(SYS_RESOURCE):
            yield Problem(key, f"{cannot(SYS_RESOURCE)}; its hard limit is {most}")
        elif number == resource.RLIMIT_NOFILE and _is_above(hard, machine.most_descriptors or -1):
            most = machine.most_descriptors
            yield Problem(key, f"this machine cannot: a process has at most {most} descriptors (fs.nr_open)")


def _is_above(wanted: int, most: int) -> bool:
    return most != resource.RLIM_INFINITY and (wanted == resource.RLIM_INFINITY or wanted > most)


def _groups(names: tuple[str, ...], machine: Machine) -> Iterator[Problem]:
    for name in names:
        try:
            known_group(name)
        except OSError:
            yield Problem("groups", f'there is no group "{name}"')
    if not machine.may(SETGID):
        yield Problem("groups", cannot(SETGID))


def _no_cgroup(wanted: CgroupPolicy) -> str | None:
    """Why the machine cannot give it such a control group."""
    found = find()
    return found if isinstance(found, str) else found.lacks(name.partition(".")[0] for name in wanted.files())


def _text(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""


def _field(file: Path, name: str) -> str:
    return next((line.split()[1] for line in _text(file).splitlines() if line.startswith(name)), "")
