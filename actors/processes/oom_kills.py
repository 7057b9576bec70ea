"""How many processes of the supervisor's cgroup the kernel killed for lack of memory.

A SIGKILL does not name its sender. The cgroup counts the kills for lack of memory:
`oom_kill` in `memory.events` (version 2, the groups below it included) or in
`memory.oom_control` (version 1). The supervisor's own group is read, which in a container is
the container's; with version 1, workers in another group are not counted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_NO_LIMIT_KB = 1 << 50
"""Version 1 writes "no limit" as a number that no machine has."""


class OomKills:
    """The counter of the supervisor's cgroup. The file stays open: a read costs one system call."""

    def __init__(self, proc: Path = Path("/proc"), mounts: Path = Path("/sys/fs/cgroup")) -> None:
        self._file = -1
        self._attributed = 0
        """The value of the counter up to which kills are attributed to deaths."""
        self.limit_kb = _machine_kb(proc)
        """The most memory that a worker can have, if known."""
        for counter, limit in _places(proc, mounts):
            with suppress(OSError):
                self._file = os.open(counter, os.O_RDONLY | os.O_CLOEXEC)
                self.limit_kb = _smaller(self.limit_kb, _limit_kb(limit))
                break

    def kills(self) -> int | None:
        """The value of the counter; None without a counter."""
        if self._file == -1:
            return None
        try:
            text = os.pread(self._file, 4096, 0)
        except OSError:
            return None
        # The space excludes version 1's oom_kill_disable. Parsed by hand: a restart waits for this twice.
        _, found, rest = text.partition(b"oom_kill ")
        return int(rest.partition(b"\n")[0]) if found else None

    def take(self, since: int | None) -> int | None:
        """How many kills since then no other death explains; one of them is attributed to this death."""
        now = self.kills()
        if now is None or since is None:
            return None
        own = max(0, now - max(since, self._attributed))
        if own:
            self._attributed = max(since, self._attributed) + 1
        return own

    def close(self) -> None:
        """Close the file."""
        if self._file != -1:
            os.close(self._file)
            self._file = -1


def _places(proc: Path, mounts: Path) -> Iterator[tuple[Path, Path]]:
    """Possible files of the counter and the limit, the likelier first."""
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        # A container may see its own group as the root, while the path is the host's.
        inside = [path.lstrip("/"), ""]
        if controllers == "memory":
            folders = [mounts / "memory" / below for below in inside]
            yield from (
                (folder / "memory.oom_control", folder / "memory.limit_in_bytes") for folder in folders
            )
        elif controllers == "":
            folders = [mounts / below for below in inside]
            yield from ((folder / "memory.events", folder / "memory.max") for folder in folders)


def _limit_kb(file: Path) -> int | None:
    try:
        kilobytes = int(file.read_text()) // 1024
    except (OSError, ValueError):  # "max", or there is none at the root
        return None
    return kilobytes if kilobytes < _NO_LIMIT_KB else None


def _machine_kb(proc: Path) -> int | None:
    try:
        name, number, *_ = (proc / "meminfo").read_text().split()
        return int(number) if name == "MemTotal:" else None
    except (OSError, ValueError):
        return None


def _smaller(one: int | None, other: int | None) -> int | None:
    return min((each for each in (one, other) if each is not None), default=None)
