"""The processes of the workers of a run, found by the folder in their environment."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .fleet.witness import FOLDER


@dataclass(frozen=True)
class Process:
    """A process of a worker."""

    pid: int
    worker: str
    generation: int
    supervisor: int

    def __str__(self) -> str:
        return f"{self.worker} generation {self.generation} (pid {self.pid})"

    def send(self, number: int) -> bool:
        """Send it a signal, unless it has ended; whether it was sent to a process that lives."""
        with suppress(ProcessLookupError, FileNotFoundError):
            pidfd = os.pidfd_open(self.pid)
            try:
                if _described(self.pid) != self or _state(self.pid) in "ZX":
                    return False
                signal.pidfd_send_signal(pidfd, number)
                return True
            finally:
                os.close(pidfd)
        return False


def living(folder: Path) -> list[Process]:
    """The processes that have noted their start, by their last notes, if they still live."""
    found = []
    for process in left_over(folder):
        notes = folder / "truth" / f"{process.worker}.jsonl"
        with suppress(OSError):
            if f'"pid": {process.pid},' in notes.read_text()[-4000:]:
                found.append(process)
    return found


def left_over(folder: Path) -> list[Process]:
    """Every process of a worker of this run that has not ended."""
    return sorted(_all(folder), key=lambda process: (process.worker, process.pid))


def _all(folder: Path) -> Iterator[Process]:
    mark = f"{FOLDER}={folder}".encode()
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        with suppress(OSError):
            environment = Path("/proc", entry, "environ").read_bytes().split(b"\0")
            process = _described(int(entry), environment)
            if mark in environment and process is not None and _state(int(entry)) not in "ZX":
                yield process


def _described(pid: int, environment: list[bytes] | None = None) -> Process | None:
    if environment is None:
        environment = Path("/proc", str(pid), "environ").read_bytes().split(b"\0")
    values = dict(entry.split(b"=", 1) for entry in environment if b"=" in entry)
    worker = values.get(b"REKINDLE_WORKER")
    if worker is None:
        return None
    generation, supervisor = (
        _number(values.get(name, b"")) for name in (b"REKINDLE_GENERATION", b"REKINDLE_SUPERVISOR_PID")
    )
    return Process(pid, worker.decode(), generation, supervisor)


def _number(value: bytes) -> int:
    """0 for what is not a number: a process that is kept warm has room for one in its environment."""
    return int(value) if value.isdigit() else 0


def _state(pid: int) -> str:
    return Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0]
