"""The control group of one process, with everything that the process starts."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path


class WorkerCgroup:
    """One group: entered by the process itself, killed as a whole, removed when it is empty."""

    def __init__(self, path: Path, *, counts_memory: bool, is_entered: bool = False) -> None:
        self.path = path
        self.counts_memory = counts_memory
        self.entrance = -1 if is_entered else os.open(path / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
        """A process that writes 0 here enters the group."""

    def close_entrance(self) -> None:
        """The process has entered it, or could not be started."""
        if self.entrance != -1:
            os.close(self.entrance)
            self.entrance = -1

    def oom_kills(self) -> int | None:
        """How many of its processes the kernel killed for lack of memory; None: it is not counted."""
        if not self.counts_memory:
            return None
        with suppress(OSError, ValueError):
            for line in (self.path / "memory.events").read_text().splitlines():
                name, _, number = line.partition(" ")
                if name == "oom_kill":
                    return int(number)
        return None

    def kill(self) -> None:
        """Kill everything in it, whatever its processes did to their sessions and parents."""
        kill_all(self.path)

    def is_empty(self) -> bool:
        """Whether no process is left in it."""
        try:
            return "populated 1" not in (self.path / "cgroup.events").read_text()
        except OSError:
            return True

    def remove(self) -> bool:
        """Remove it with the groups that were made in it; whether it is gone."""
        return remove_tree(self.path)


def kill_all(path: Path) -> None:
    """Kill everything in a group; before Linux 5.14 one process after the other."""
    try:
        file = os.open(path / "cgroup.kill", os.O_WRONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        _kill_each(path)
    except OSError:
        pass
    else:
        with suppress(OSError):
            os.write(file, b"1")
        os.close(file)


def _kill_each(path: Path) -> None:
    for folder, _, _ in os.walk(path):
        with suppress(OSError):
            for pid in Path(folder, "cgroup.procs").read_text().split():
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(int(pid), signal.SIGKILL)


def remove_tree(path: Path) -> bool:
    """Remove a group and the groups in it; False while a process is in one of them."""
    try:
        for folder, _, _ in os.walk(path, topdown=False):
            os.rmdir(folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
