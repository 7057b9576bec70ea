"""What a worker writes about itself, apart from Rekindle; standard library only.

Every line is one append to a file of the worker, so it survives a SIGKILL. A kernel lock per worker and
per job shows whether another process lives or executes at the same time: the kernel releases the lock
when the process ends, however it ends.
"""

from __future__ import annotations

import fcntl
import json
import os
import time

FOLDER = "NEMESIS"
"""The variable with the folder of the run; it also marks every process of the run."""

ALIVE_EVERY_S = 0.5


class Witness:
    """The notes of one process of a worker."""

    def __init__(self) -> None:
        self._folder = os.environ[FOLDER]
        self._worker = os.environ["REKINDLE_WORKER"]
        self._generation = int(os.environ["REKINDLE_GENERATION"])
        self._file = self._open("truth", f"{self._worker}.jsonl", os.O_APPEND)
        self._next_alive = time.monotonic() + ALIVE_EVERY_S
        self._life = self._locked(self._worker)
        supervisor = int(os.environ.get("REKINDLE_SUPERVISOR_PID") or os.getppid())
        self.note("start", supervisor=supervisor, holder=self._life[1])

    def note(self, what: str, **more: object) -> None:
        """Append a line."""
        line = {
            "what": what,
            "at": time.monotonic(),
            "wall_ms": time.time_ns() // 1_000_000,
            "worker": self._worker,
            "generation": self._generation,
            "pid": os.getpid(),
            **more,
        }
        os.write(self._file, json.dumps(line).encode() + b"\n")

    def alive(self) -> None:
        """Note now and then that the process lives."""
        if time.monotonic() >= self._next_alive:
            self._next_alive = time.monotonic() + ALIVE_EVERY_S
            self.note("alive")

    def begin(self, job: int, attempt: int, resumed: object = None) -> int:
        """Note that an execution begins; return the lock to give to `done`."""
        lock, holder = self._locked(f"job-{job}")
        self.note("begin", job=job, attempt=attempt, holder=holder, resumed=resumed)
        return lock

    def done(self, lock: int, job: int, attempt: int, how: str) -> None:
        """Note that an execution ends, and release its lock."""
        self.note("done", job=job, attempt=attempt, how=how)
        os.close(lock)

    def _locked(self, name: str) -> tuple[int, str]:
        """A lock, and the process that holds it already; empty if this process has it now."""
        lock = self._open("locks", name, 0)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return lock, os.pread(lock, 200, 0).decode().strip() or "a process that has not written its name"
        owner = f"generation {self._generation}, pid {os.getpid()}"
        os.pwrite(lock, owner.ljust(60).encode(), 0)
        return lock, ""

    def _open(self, kind: str, name: str, flags: int) -> int:
        path = os.path.join(self._folder, kind, name)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | flags, 0o666)
