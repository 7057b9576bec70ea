"""Carries out the moves of a plan against a real supervisor."""

from __future__ import annotations

import heapq
import itertools
import signal
import time
from collections.abc import Callable
from pathlib import Path

from rekindle.cli.client import ControlError, path_of

from .databases import Database
from .fleet.workers_file import MOST_SCALED, SCALED, file_text
from .journal import Journal
from .plan import Move
from .processes import Process, living
from .supervisor import Supervisor

TICK_S = 0.02
MOST_KILLED_AT_ONCE = 8
OFTENEST_AT_START = 3
LONGEST_UPGRADE_S = 20.0
"""How long an upgrade may take on a busy machine, with its check."""


class Attack:
    """One attack, from the first move to the calm after the last."""

    def __init__(self, folder: Path, state: Path, database: Database, journal: Journal) -> None:
        self.supervisor = Supervisor(folder, state, journal)
        self._folder = folder
        self._state = state
        self._database = database
        self._journal = journal
        self._variant = 0
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._outage: tuple[str, float] | None = None
        self.write_file()

    def write_file(self) -> None:
        """Write the configuration file in its current variant."""
        self.supervisor.file.write_text(file_text(self._state, self._database.url, self._variant))

    def run(self, moves: tuple[Move, ...], told: Callable[[str], None]) -> None:
        """Make every move at its time."""
        began = time.monotonic()
        for number, move in enumerate(moves, 1):
            self._pass_time_until(began + move.at)
            told(
                f"{time.monotonic() - began:6.1f} s  move {number} of {len(moves)}: {move.word} {move.fault}"
            )
            self._make(move)
        self.calm()

    def calm(self) -> None:
        """End every fault, and have a supervisor run."""
        while self._agenda:
            heapq.heappop(self._agenda)[2]()
        self._repair()
        for process in living(self._folder):
            process.send(signal.SIGCONT)
        self.supervisor.signal(signal.SIGCONT)
        self.supervisor.start()

    # ── time ─────────────────────────────────────────────────────────────────────────────

    def _pass_time_until(self, moment: float) -> None:
        while True:
            if self.supervisor.has_ended():
                self._after(0.3, self.supervisor.start)
            now = time.monotonic()
            while self._agenda and self._agenda[0][0] <= now:
                heapq.heappop(self._agenda)[2]()
            if now >= moment:
                return
            time.sleep(TICK_S)

    def _after(self, seconds: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (time.monotonic() + seconds, next(self._numbers), what))

    # ── moves ────────────────────────────────────────────────────────────────────────────

    def _make(self, move: Move) -> None:
        match move.word:
            case "kill" | "term" | "freeze":
                self._signal_worker(move)
            case "kill_many":
                self._kill(move.number % MOST_KILLED_AT_ONCE + 1)
            case "kill_supervisor" | "kill_worker_then_supervisor" | "kill_supervisor_at_start":
                self._kill_supervisor(move)
            case "freeze_supervisor":
                began = time.monotonic()
                self.supervisor.signal(signal.SIGSTOP)
                self._after(move.for_s, lambda: self._thaw(began))
            case "stop_supervisor":
                self.supervisor.stop()
                self._after(move.for_s / 4, self.supervisor.start)
            case "upgrade":
                began = time.monotonic()
                self._journal.note("stall", kind="upgraded", began=began, ended=began + LONGEST_UPGRADE_S)
                self._post("upgrade")
            case "database":
                self._break_database(move)
            case _:
                self._order(move)

    def _thaw(self, began: float) -> None:
        """Let the supervisor go on: later than planned if orders were waiting for its answer."""
        self.supervisor.signal(signal.SIGCONT)
        self._journal.note("stall", kind="frozen", began=began, ended=time.monotonic())

    def _signal_worker(self, move: Move) -> None:
        found = living(self._folder)
        if not found:
            return
        process = found[move.pick % len(found)]
        number = {"kill": signal.SIGKILL, "term": signal.SIGTERM, "freeze": signal.SIGSTOP}[move.word]
        self._send(process, number)
        if move.word == "freeze":
            self._after(move.for_s, lambda: self._send(process, signal.SIGCONT))

    def _kill(self, number: int) -> None:
        for process in living(self._folder)[:number]:
            self._send(process, signal.SIGKILL)

    def _send(self, process: Process, number: int) -> None:
        # Noted before it is sent: the process may be recorded as dead before this one runs again.
        at = time.monotonic()
        if process.send(number):
            self._journal.note(
                "signal",
                sent=at,
                worker=process.worker,
                generation=process.generation,
                pid=process.pid,
                number=int(number),
            )

    def _kill_supervisor(self, move: Move) -> None:
        if move.word == "kill_worker_then_supervisor":
            self._kill(move.number % 3 + 1)
            time.sleep(min(move.for_s, 0.3))
        self.supervisor.kill()
        if move.word == "kill_supervisor_at_start":
            for _ in range(move.number % OFTENEST_AT_START + 1):
                self.supervisor.start()
                self._wait(move.for_s / 3)
                self.supervisor.kill()
        self._after(move.for_s / 4 if move.number % 2 else 0.0, self.supervisor.start)

    def _wait(self, seconds: float) -> None:
        self._pass_time_until(time.monotonic() + seconds)

    def _break_database(self, move: Move) -> None:
        if self._outage is not None:
            return
        began = time.monotonic()
        self._outage = move.fault, began
        self._database.break_(move.fault)
        if move.fault in ("cut", "restarted"):
            self._repair()
        else:
            self._after(move.for_s, self._repair)

    def _repair(self) -> None:
        self._database.repair()
        if self._outage is not None:
            fault, began = self._outage
            self._journal.note("outage", kind=fault, began=began, ended=time.monotonic())
            self._outage = None

    # ── orders ───────────────────────────────────────────────────────────────────────────

    def _order(self, move: Move) -> None:
        found = living(self._folder)
        worker = found[move.pick % len(found)].worker if found else "worker:beat:0"
        for_s = max(0.1, move.for_s)
        match move.word:
            case "reload":
                self._variant += 1
                self.write_file()
                self._post("reload")
            case "scale":
                self._post("groups", SCALED, "scale", count=move.number % (MOST_SCALED + 1))
            case "pause":
                self._post("workers", worker, "pause", for_s=for_s, reason="nemesis")
            case "pause_all":
                self._post("pause", for_s=for_s, reason="nemesis")
            case "stop":
                self._post("workers", worker, "stop")
                self._after(for_s, lambda: self._post("workers", worker, "start"))
            case word:
                self._post("workers", worker, word)

    def _post(self, *parts: str, **body: object) -> None:
        try:
            self.supervisor.client.post(path_of(*parts), dict(body))
            answer = "done"
        except ControlError as error:
            answer = str(error)
        self._journal.note("order", order="/".join(parts), **body, answer=answer)
