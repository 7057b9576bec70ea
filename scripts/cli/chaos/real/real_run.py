"""Runs a scenario on real processes, in time scaled by a speed."""

from __future__ import annotations

import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from rekindle.actors.simulation import HistoryCheck, Outcome, Scenario, Slack, Step, Tolerance, draw, unmet
from rekindle.actors.simulation.history_check import violations
from rekindle.actors.simulation.scenarios import moves
from rekindle.actors.simulation.scenarios.history import (
    AnyEntry,
    Concluded,
    Counted,
    Ended,
    FinalReport,
    History,
    Moved,
    Stored,
    SupervisorEnded,
)
from rekindle.actors.simulation.scenarios.invariants import (
    counters_equal_the_history,
    no_death_is_forgotten,
    no_event_is_missing,
    unreached,
)
from rekindle.actors.simulation.scenarios.jobs.job_moves import (
    CancelJob,
    Enqueue,
    LimitQueue,
    PauseQueue,
    ResumeQueue,
)
from rekindle.actors.simulation.scenarios.known_state import Facts
from rekindle.actors.simulation.scenarios.moves import (
    EVERY_WORKER,
    WORDS,
    DatabaseState,
    Move,
    in_words,
    worker_of,
)
from rekindle.actors.simulation.scenarios.worker_facts import WorkerFacts
from rekindle.actors.simulation.virtual_run import bound_s
from rekindle.worker.guardian import marked_processes, sweep

from .journal import Journal, entries_of
from .plan import RealRunPlan, planned
from .scenario_database import ScenarioDatabase
from .supervisor_process import SupervisorProcess
from .worker_orders import WorkerOrders, suspend

PATIENCE_S = 30.0
"""How many real seconds a busy machine may be late."""

WHEN_QUIET = (counters_equal_the_history, no_death_is_forgotten, no_event_is_missing)
"""Rules that hold only while no event is pending; with frequent deaths the run waits for such a moment."""


def run_real(
    scenario: Scenario,
    seed: int = 0,
    *,
    speed: float,
    steps: tuple[Step, ...] | None = None,
    warm: bool = False,
) -> Outcome:
    """Run a scenario once, on real processes, a real database and a real clock.

    Args:
        scenario: what happens.
        seed: decides everything that the scenario leaves open, but not the timing of the machine.
        speed: how many seconds of the scenario pass in one real second.
        steps: the moves to make, instead of the ones that the seed draws.
        warm: have warm processes fork the workers, with a standby for each application.

    Raises:
        ScenarioError: the scenario is invalid.
    """
    scenario.checked()
    drawn = draw(scenario, seed) if steps is None else steps
    with tempfile.TemporaryDirectory(prefix="rekindle-chaos-") as folder:
        return RealRun(scenario, drawn, speed, Path(folder), warm=warm).run(seed)


class RealRun:
    """One run of one scenario."""

    def __init__(
        self, scenario: Scenario, steps: tuple[Step, ...], speed: float, folder: Path, *, warm: bool = False
    ) -> None:
        self.scenario = scenario
        self.steps = steps
        self.speed = speed
        self.folder = folder
        self.plan: RealRunPlan = planned(scenario, folder, speed, warm=warm)
        self.plan.write()
        self.journal = Journal(self.plan)
        self.database = ScenarioDatabase(self.plan.database, folder, steps)
        self._marks: list[str] = []
        self._workers = WorkerOrders(folder, [worker.id for worker in self.plan.workers], speed, self._marks)
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._by_number = {step.number: step for step in steps}
        self._process: SupervisorProcess | None = None
        self._standby: SupervisorProcess | None = None
        self._lives = 0
        self._is_degraded = False
        self._upgrades = 0  # ordered and not carried out
        self._is_killed = False
        """Whether a move kills the supervisor that runs."""
        self._state = DatabaseState.BACK
        self._found: tuple[int, list[FinalReport]] = (0, [])
        """The last report of the supervisor, and the length of the history when it was checked."""

    # ── the run ──────────────────────────────────────────────────────────────────────────

    def run(self, seed: int) -> Outcome:
        """Run everything, from the first start to the end of the last process."""
        try:
            self._begin_life()
            for step in self.steps:
                self._at(step.at, lambda step=step: self._take(step))  # type: ignore[misc]
            self._pass_time_until(self.scenario.lasts_s)
            self._calm_down()
            self._wait_for_what_is_wanted()
            self._shut_down()
        finally:
            for process in (self._process, self._standby):
                if process is not None:
                    process.kill()
            for mark in self._marks:
                sweep(mark, 5.0)
            self.database.close()
        return self._outcome(seed)

    def _outcome(self, seed: int) -> Outcome:
        entries = self._entries()
        held_against, reported = self._found
        entries[held_against:held_against] = reported
        tolerance = Tolerance(late_s=PATIENCE_S * self.speed, delay_s=0.002 * self.speed)
        specs = [role.spec for role in self.scenario.roles]
        broken = violations(entries, specs, self._slack())
        missing = unmet(self.scenario.expected, entries, tolerance)
        return Outcome(self.scenario, seed, self.steps, History(entries), broken, missing, self.journal.now())

    def _slack(self) -> Slack:
        return Slack(order_s=1.0 * self.speed, time_s=0.5 * self.speed)

    def _entries(self) -> list[AnyEntry]:
        return entries_of((self.folder / "history").read_bytes())

    # ── time ─────────────────────────────────────────────────────────────────────────────

    def _at(self, moment: float, what: Callable[[], None]) -> None:
        self._agenda.append((moment, len(self._agenda), what))

    def _after(self, for_s: float | None, what: Callable[[], None]) -> None:
        if for_s is not None:
            self._at(self.journal.now() + for_s, what)

    def _pass_time_until(self, moment: float) -> None:
        while True:
            due = min((each for each in self._agenda if each[0] <= moment), default=None)
            target = moment if due is None else due[0]
            if self._receive(max(0.0, (target - self.journal.now()) / self.speed)):
                continue  # the message may have changed what is due
            if due is None:
                return
            self._agenda.remove(due)
            due[2]()

    def _receive(self, within_s: float) -> bool:
        """Wait for a message of the supervisor; whether one arrived or the supervisor ended."""
        if self._process is None:
            time.sleep(within_s)
            return False
        message = self._process.receive(within_s)
        if message is None:
            return False
        self._hear(message)
        return True

    def _hear(self, message: dict[str, Any]) -> None:
        if "ended" in message:
            self._end_life()
        elif "upgraded" in message:
            self._upgrades -= 1
        elif "reached" in message:
            self._reached(message["reached"])

    # ── supervisors ──────────────────────────────────────────────────────────────────────

    def _begin_life(self) -> None:
        if self._process is not None:
            return
        self._lives += 1
        if self._state is not DatabaseState.LOCKED:
            self._set_database(DatabaseState.BACK, 0.0)  # without a database no supervisor starts
        process = self._standby or SupervisorProcess(self.folder)
        self._standby = None
        process.open()
        self._marks.append(process.mark)
        if self._lives == 1:
            self.plan.epoch = time.monotonic()
            self.plan.write()
        self._count()
        process.send({"do": "begin", "epoch": self.plan.epoch, "life": self._lives})
        self._process, self._is_killed = process, False
        if any(isinstance(step.move, moves.KillSupervisor) for step in self.steps):
            # Started beforehand, so that it is ready as soon as it is needed.
            self._standby = SupervisorProcess(self.folder)

    def _end_life(self) -> None:
        """The supervisor has ended, so its workers must end too."""
        assert self._process is not None
        self.journal.note(SupervisorEnded(self.journal.now(), self._lives, killed=True))
        self._upgrades = 0
        self._process.kill()
        if not self._is_killed:
            raise RuntimeError(f"the supervisor ended by itself: {self._process.errors()}")
        self._process = None
        if self._state is DatabaseState.FULL:
            self._set_database(DatabaseState.BACK, 0.0)  # the first reader of a log needs room beside it
        deadline = time.monotonic() + 10.0
        while marked_processes(self._marks[-1]) and time.monotonic() < deadline:
            time.sleep(0.05)  # scanning all processes of the machine takes time
        known = self._facts(self._entries()).workers
        if not marked_processes(self._marks[-1]):
            for worker, facts in known.items():
                if facts.living is not None:
                    self.journal.note(Ended(self.journal.now(), worker, facts.living, None, 9, "cleanup"))
        self._note_last_deaths(known)

    def _note_last_deaths(self, known: dict[str, WorkerFacts]) -> None:
        """Record deaths that were committed just before the supervisor was killed."""
        for worker, generation, action, wall_ms in self.database.deaths():
            facts = known.get(worker)
            if facts is None or generation in facts.stored:
                continue
            decided = facts.decided.get(generation)
            cleared = decided is not None and decided.streak_cleared
            at, wall = self.journal.now(), self.journal.wall(wall_ms)
            self.journal.note(Stored(at, "death", worker, generation, action, cleared, wall))

    def _facts(self, entries: list[AnyEntry]) -> Facts:
        check = HistoryCheck([role.spec for role in self.scenario.roles], self._slack())
        for entry in entries:
            check.take(entry)
        return check.facts

    def _count(self) -> None:
        """Record the counters of the database."""
        for worker, restarts, streak, failed_at in self.database.counts():
            self.journal.note(Counted(self.journal.now(), worker, restarts, streak, failed_at is not None))

    # ── moves ────────────────────────────────────────────────────────────────────────────

    def _take(self, step: Step) -> None:
        if step.during is None:
            self._make(step)
        elif self._process is not None:
            deadly = isinstance(step.move, moves.KillSupervisor)
            self._send(do="arm", phase=step.during.value, of=step.of, number=step.number, deadly=deadly)

    def _reached(self, number: int) -> None:
        step = self._by_number[number]
        if isinstance(step.move, moves.KillSupervisor):
            self._note_move(step)
            self._is_killed = True
            self._after(step.move.back_after_s, self._begin_life)
        else:
            self._make(step)

    def _note_move(self, step: Step) -> None:
        move = step.move
        self.journal.note(
            Moved(self.journal.now(), step.number, in_words(move), WORDS[type(move)], worker_of(move))
        )

    def _make(self, step: Step) -> None:
        self._note_move(step)
        if self._process is not None:
            self._do(step.move)

    def _send(self, **order: object) -> None:
        if self._process is not None:
            self._process.send(order)

    def _do(self, move: Move) -> None:
        match move:
            case moves.KillSupervisor(back_after_s=back_after_s):
                assert self._process is not None
                self._process.signal(signal.SIGKILL)
                self._is_killed = True
                self._end_life()
                self._after(back_after_s, self._begin_life)
            case moves.Database(state=state, for_s=for_s, takes_s=takes_s):
                self._set_database(state, takes_s)
                self._after(for_s, lambda: self._set_database(DatabaseState.BACK, 0.0))
            case moves.SetClock(by_s=by_s):
                self._send(do="clock", by_ms=round(by_s * 1000))
            case moves.HostSleep(for_s=for_s):
                assert self._process is not None
                suspend((self._process.pid, *self._workers.pids()), for_s / self.speed)
            case moves.ActorRaises(actor=actor, times=times):
                self._send(do="mistake", actor=actor.class_name, times=times)
            case moves.LateFrame(worker=worker, generations=generations):
                self._send(do="late_frame", worker=worker, generations=max(1, generations))
            case moves.StaleTimer(worker=worker, generations=generations):
                self._send(do="stale_timer", worker=worker, generations=max(1, generations))
            case moves.Pause(worker=worker, for_s=for_s):
                whom = None if worker == EVERY_WORKER else worker
                self._send(do="pause", worker=whom, for_s=self._real(for_s))
            case moves.Stop(urgency=urgency):
                self._send(do="stop", worker=worker_of(move), urgency=urgency.level)
            case moves.Resume() | moves.Start() | moves.Restart() | moves.RollOut() | moves.Reset():
                self._send(do=WORDS[type(move)], worker=worker_of(move))
            case moves.UpgradeSupervisor(times=times):
                self._upgrades += times
                for _ in range(times):
                    self._send(do="upgrade")
            case Enqueue() | CancelJob() | PauseQueue() | ResumeQueue() | LimitQueue():
                pass  # real workers of a scenario take no jobs; the nemesis has some that do
            case _:
                for worker in self.scenario.ids if move.worker == EVERY_WORKER else (move.worker,):
                    self._workers.touch(worker, move, self._after)

    def _real(self, seconds: float | None) -> float | None:
        return None if seconds is None else seconds / self.speed

    def _set_database(self, state: DatabaseState, takes_s: float) -> None:
        self._state = state
        self._send(do="database", state=self.database.become(state, takes_s / self.speed).value)

    # ── the end ──────────────────────────────────────────────────────────────────────────

    def _calm_down(self) -> None:
        self._agenda.clear()
        self._begin_life()
        self._set_database(DatabaseState.BACK, 0.0)
        self._send(do="disarm")
        for worker in self.scenario.ids:
            self._workers.calm(worker)
        # Each takes a second: many in a row are carried out long after they were ordered.
        deadline = time.monotonic() + PATIENCE_S * self._upgrades
        while self._upgrades and time.monotonic() < deadline:
            self._receive(0.25)

    def _wait_for_what_is_wanted(self) -> None:
        deadline = time.monotonic() + bound_s(self.scenario) / self.speed + PATIENCE_S
        while time.monotonic() < deadline:
            self._begin_life()  # if the last move killed it
            reported = self._report()
            entries = self._entries()
            self._found = (len(entries), reported)
            facts = self._facts(entries)
            # The store is retried in real time, however fast the scenario runs.
            is_quiet = reported and not self._is_degraded and facts.everything_is_told
            if is_quiet and not any(self._lacks(facts, entry) for entry in reported):
                return
            time.sleep(0.25)

    def _lacks(self, facts: Facts, entry: FinalReport) -> bool:
        """Whether a worker has not reached its wanted state, or an event is still pending."""
        if unreached(facts, entry) is not None:
            return True
        return any(what for rule in WHEN_QUIET for what in rule(facts, entry, self._slack()))

    def _report(self) -> list[FinalReport]:
        self._send(do="report")
        deadline = time.monotonic() + PATIENCE_S
        while self._process is not None and time.monotonic() < deadline:
            answer = self._process.receive(1.0)
            if answer is not None and "report" in answer:
                self._is_degraded = answer["degraded"] is not None
                return msgspec.convert(answer["report"], list[FinalReport])
            if answer is not None:
                self._hear(answer)
        return []

    def _shut_down(self) -> None:
        assert self._process is not None
        code = self._process.stop()
        left = tuple(sorted({id_ for mark in self._marks for _, id_ in marked_processes(mark)}))
        self._process = None
        self._count()
        self.journal.note(Concluded(self.journal.now(), left or (() if code == 0 else ("the supervisor",))))
