"""Where control groups of version 2 can be made on this machine, and why not.

The supervisor's own group is the place: under systemd with `Delegate=yes`, in a container with a writable
hierarchy, or the root of the machine. Controllers that version 1 has taken are missing in version 2.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

_IS_MOVED = re.compile(r"rekindle-[0-9]+-[0-9]+-supervisor")


class Hierarchy(msgspec.Struct, frozen=True):
    """The group in which the groups of workers are made."""

    base: Path
    controllers: frozenset[str]
    """What can be limited there."""
    of_version_1: frozenset[str]
    """Controllers that this machine uses with version 1."""

    def lacks(self, controllers: Iterable[str]) -> str | None:
        """Why these cannot be used; None if they can."""
        for name in sorted(set(controllers) - self.controllers):
            if name in self.of_version_1:
                return f"this machine cannot: it uses the controller {name} with control groups of version 1"
            return f"this machine cannot: the controller {name} is not available in {self.base}"
        return None


def find(proc: Path = Path("/proc")) -> Hierarchy | str:
    """The hierarchy of this process, or why no group can be made."""
    own = _own_path(proc)
    mount = _mount(proc)
    if own is None or mount is None:
        return "this machine cannot: control groups of version 2 are not mounted"
    point, root = mount
    base = point / os.path.relpath(own, root) if _is_below(own, root) else point
    if _IS_MOVED.fullmatch(base.name):
        base = base.parent  # this process moved itself there, beside its workers
    try:
        controllers = (base / "cgroup.controllers").read_text().split()
    except OSError as error:
        return f"this machine cannot: {base} cannot be read: {error.strerror}"
    if not os.access(base, os.W_OK) or not os.access(base / "cgroup.subtree_control", os.W_OK):
        reason = "is not writable; under systemd set Delegate=yes"
        return f"this machine cannot: the supervisor's control group {base} {reason}"
    return Hierarchy(base, frozenset(controllers), _of_version_1(proc))


def _own_path(proc: Path) -> str | None:
    lines = _lines(proc / "self" / "cgroup")
    return next((line.removeprefix("0::") for line in lines if line.startswith("0::")), None)


def _mount(proc: Path) -> tuple[Path, str] | None:
    """Where version 2 is mounted, and which group is its root there."""
    for line in _lines(proc / "self" / "mountinfo"):
        before, _, after = line.partition(" - ")
        if after.startswith("cgroup2 "):
            root, point = before.split()[3:5]
            return Path(point), root
    return None


def _is_below(path: str, root: str) -> bool:
    return root == "/" or path == root or path.startswith(f"{root}/")


def _of_version_1(proc: Path) -> frozenset[str]:
    fields = [line.split() for line in _lines(proc / "cgroups") if not line.startswith("#")]
    return frozenset(name for name, hierarchy, *_ in fields if hierarchy != "0")


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []
