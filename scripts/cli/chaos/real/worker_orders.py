"""What a scenario does to the real processes of its workers: signals, and orders in a file."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from rekindle.actors.simulation.scenarios import moves
from rekindle.actors.simulation.scenarios.moves import Touch
from rekindle.worker.guardian import marked_processes

After = Callable[[float | None, Callable[[], None]], None]
"""Makes a call after a time of the scenario; None: never."""


class WorkerOrders:
    """Signals workers, and tells their script how to behave."""

    def __init__(self, folder: Path, ids: Iterable[str], speed: float, marks: list[str]) -> None:
        self._folder = folder
        self._speed = speed
        self._marks = marks
        """The marks of all supervisors so far; the processes of the last one are meant."""
        for id_ in ids:
            (folder / f"{id_}.orders").touch()

    def touch(self, worker: str, move: Touch, after: After) -> None:
        """Make a move on the process of a worker; `after` undoes it when its time is over."""
        match move:
            case moves.Kill(signal=signum):
                self.signal(worker, signum)
            case moves.Freeze(for_s=for_s):
                self.signal(worker, signal.SIGSTOP)
                after(for_s, lambda: self.signal(worker, signal.SIGCONT))
            case moves.Thaw():
                self.signal(worker, signal.SIGCONT)
            case moves.SlowHeartbeats(every_s=every_s, for_s=for_s):
                self._order(worker, do="slow", every_s=every_s / self._speed, for_s=self._real(for_s))
            case moves.LoseHeartbeats(for_s=for_s):
                self._order(worker, do="lose", for_s=self._real(for_s))
            case moves.Garbage(lines=lines):
                self._order(worker, do="garbage", lines=lines)
            case moves.ProbeFails():
                pass  # real workers of a scenario have no probes

    def calm(self, worker: str) -> None:
        """End what was done to a worker."""
        self.signal(worker, signal.SIGCONT)
        self._order(worker, do="calm")

    def _real(self, seconds: float | None) -> float | None:
        return None if seconds is None else seconds / self._speed

    def signal(self, worker: str, signum: int) -> None:
        """Send the processes of a worker a signal."""
        for pid in self.pids(worker):
            with suppress(ProcessLookupError):
                os.kill(pid, signum)

    def pids(self, worker: str | None = None) -> list[int]:
        """The processes of a worker, or of all workers."""
        found = marked_processes(self._marks[-1]) if self._marks else []
        return [pid for pid, id_ in found if worker in (None, id_)]

    def _order(self, worker: str, **order: object) -> None:
        with (self._folder / f"{worker}.orders").open("ab") as orders:
            orders.write(json.dumps(order).encode() + b"\n")


def suspend(pids: Iterable[int], real_s: float) -> None:
    """Suspend these processes, as a sleeping host does."""
    pids = tuple(pids)
    for signum in (signal.SIGSTOP, signal.SIGCONT):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signum)
        if signum == signal.SIGSTOP:
            time.sleep(real_s)
