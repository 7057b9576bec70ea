"""A supervisor of a real run, to be killed: `python -m rekindle.cli.chaos.real.killable_supervisor FOLDER`.

Runs the plan in FOLDER and records what its actors do in FOLDER/history. It reads orders from
standard input, one JSON line each, and answers on standard output. It waits for an order to open
the store and for another one to begin, and ends when standard input ends. Upgraded, it executes
itself and continues.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import msgspec

from rekindle.actors import RekindleError, System, messages
from rekindle.actors.errors import StoreUnavailableError
from rekindle.actors.handover import Estate, Inheritance
from rekindle.actors.messages.internal.to_monitor import FrameReceived
from rekindle.actors.messages.internal.to_supervisor import BackoffElapsed
from rekindle.actors.processes.spawn.launcher import Launcher
from rekindle.actors.simulation import Phase
from rekindle.actors.simulation.faulty_store import FaultyStore
from rekindle.actors.simulation.observer import event_entry
from rekindle.actors.simulation.scenarios.history import (
    EventsStored,
    FinalReport,
    Ordered,
    Stored,
    SupervisorStarted,
)
from rekindle.actors.simulation.scenarios.jobs.job_entries import JobReleased
from rekindle.actors.simulation.scenarios.moves import DatabaseState
from rekindle.actors.simulation.scripted.heartbeats import HEALTHY
from rekindle.actors.spec.policies.stop_policy import Urgency
from rekindle.persistence import open_store
from rekindle.persistence.store import SqlStore
from rekindle.persistence.store_check import is_current

from .host_upgrade import PART, HostState, execute, take_over
from .journal import ActorRecorder, Journal, RecordingRuntime
from .plan import RealRunPlan

BUSY_MS = 200
"""How long a commit waits for the lock of the database."""


class RecordingSystem(System):
    """A system whose actors are recorded."""

    def __init__(
        self,
        plan: RealRunPlan,
        store: FaultyStore,
        recorder: ActorRecorder,
        launcher: Launcher,
        inheritance: Inheritance | None,
    ) -> None:
        super().__init__(
            plan.specs(),
            store=store.as_store(),
            max_concurrent_starts=plan.max_concurrent_starts,
            launcher=launcher,
            inheritance=inheritance,
        )
        self._recorder = recorder

    def check_upgrade(self) -> None:
        """Ask the actors whether they could be replaced now.

        Raises:
            RekindleError: they could not.
        """
        self._lifecycle.memory()

    def hand_over(self, estate: Estate) -> None:
        """Stop everything but the processes, and leave what the next program needs."""
        self._lifecycle.freeze(estate)

    def go_on(self) -> None:
        """Take over the processes that the former program left."""
        self._lifecycle.go_on()

    def _make_runtime(self) -> RecordingRuntime:
        return RecordingRuntime(self._recorder)


class ScenarioHost:
    """Carries out the orders of the scenario."""

    def __init__(self, plan: RealRunPlan, launcher: Launcher, inheritance: Inheritance | None) -> None:
        self.plan = plan
        self._launcher = launcher
        self._is_upgraded = inheritance is not None
        self.journal = Journal(plan)
        self.recorder = ActorRecorder(plan, self.journal, self._reached)
        real = _opened(plan, inheritance)
        committed = self.recorder.committed
        self.store = FaultyStore(real, now=self.journal.now, note=self._stored, committed=committed)
        self.system = RecordingSystem(plan, self.store, self.recorder, launcher, inheritance)
        taken = None if inheritance is None else inheritance.take(PART, HostState)
        if taken is not None:
            self.recorder.take_over(taken[0].recorder)
            self.store.state = taken[0].database
        self._lock = threading.Lock()
        self._publishing = threading.Lock()
        self._unnoted: list[messages.Event] | None = []
        """What was published before the supervisor counts as started; None: it does."""

    def _stored(self, entry: Stored | EventsStored | JobReleased) -> None:
        if isinstance(entry, Stored):
            entry = msgspec.structs.replace(entry, wall_ms=self.journal.wall(entry.wall_ms))
        self.journal.note(entry)

    def _reached(self, number: int) -> None:
        self.send({"reached": number})

    def send(self, document: dict[str, Any]) -> None:
        """Send a document to the scenario."""
        with self._lock:
            sys.stdout.write(json.dumps(document) + "\n")
            sys.stdout.flush()

    def run(self) -> None:
        """Supervise until standard input ends."""
        self.system.open()
        self.system.subscribe(_Receiver(self._published))
        # Not buffered: what was not read is for the program that follows an upgrade.
        with open(0, "rb", buffering=0, closefd=False) as orders:
            if self._begin(orders.readline):
                while line := orders.readline():
                    self._carry_out(json.loads(line))
                self.journal.note(Ordered(self.journal.now(), "shutdown"))
        self.system.stop()

    def _begin(self, next_order: Callable[[], bytes]) -> bool:
        """Start the workers when the scenario says so, or continue with them; whether there are any."""
        if self._is_upgraded:
            self._note_published()
            self.system.go_on()
            self.send({"upgraded": True})
            return True
        # What ended with the former supervisor is decided before this one counts as started.
        self.system.report()
        self.send({"mark": self.system.mark})
        order = json.loads(next_order() or "null")
        if order is None:
            return False
        self.plan.epoch = order["epoch"]
        self.journal.note(SupervisorStarted(self.journal.now(), order["life"], self.journal.wall_now()))
        self._note_published()
        self.system.start()
        return True

    def _published(self, event: messages.Event) -> None:
        """Note an event; one that is published before the supervisor counts as started, after its start."""
        with self._publishing:
            if self._unnoted is not None:
                self._unnoted.append(event)
                return
        self.journal.note(event_entry(self.journal.now(), event))

    def _note_published(self) -> None:
        with self._publishing:
            for event in self._unnoted or ():
                self.journal.note(event_entry(self.journal.now(), event))
            self._unnoted = None

    def _upgrade(self) -> None:
        """Execute this program again, unless it could not take over now."""
        try:
            is_current(self.plan.database)
            self.system.check_upgrade()
        except RekindleError:
            self.send({"upgraded": False})
            return
        estate = Estate()
        self.system.hand_over(estate)
        host = HostState(recorder=self.recorder.leave(), database=self.store.state)
        self._launcher.ask(lambda: execute(estate, host, self.store.lock))

    def _carry_out(self, order: dict[str, Any]) -> None:
        match order["do"]:
            case "arm":
                self.recorder.arm(Phase(order["phase"]), order["of"], order["number"], deadly=order["deadly"])
            case "disarm":
                self.recorder.disarm()
            case "mistake":
                self.recorder.mistakes[order["actor"]] = order["times"]
            case "clock":
                self.recorder.clock.offset_ms += order["by_ms"]
            case "database":
                self.store.state = DatabaseState(order["state"])
            case "late_frame":
                generation = self.recorder.generation(order["worker"]) - order["generations"]
                self.recorder.tell("HealthMonitor", FrameReceived(order["worker"], generation, HEALTHY))
            case "stale_timer":
                generation = self.recorder.generation(order["worker"]) - order["generations"]
                self.system.supervisor.tell(BackoffElapsed(order["worker"], generation, generation))
            case "upgrade":
                self._upgrade()
            case "roll_out":
                self.system.supervisor.tell(messages.RollOut(order["worker"]))
            case "report":
                report = self.system.report()
                known = {worker.id for worker in self.plan.workers}  # and the spares of rollouts are not
                workers = [self._reported(each) for each in report.workers if each.component_id in known]
                self.send({"report": workers, "degraded": report.degraded})
            case word:
                self._order(word, order["worker"], order.get("for_s"), Urgency(order.get("urgency", 0)))

    def _order(self, word: str, worker: str | None, for_s: float | None, urgency: Urgency) -> None:
        ids = None if worker is None else (worker,)
        scenario_s = None if for_s is None else for_s * self.plan.speed

        def taken(answer: object) -> None:
            if isinstance(answer, messages.Done):
                self.journal.note(Ordered(self.journal.now(), word, worker, scenario_s))

        reply = _Receiver(taken)
        commands: dict[str, Callable[[], messages.HostCommand]] = {
            "pause": lambda: messages.PauseWorkers(ids, reply, "chaos", for_s),
            "resume": lambda: messages.ResumeWorkers(ids, reply),
            "start": lambda: messages.StartWorkers(ids, reply),
            "stop": lambda: messages.StopWorkers(ids, urgency=urgency),
            "restart": lambda: messages.RestartWorker(worker or "", reply),
            "reset": lambda: messages.ResetWorker(worker or "", reply),
        }
        self.system.supervisor.tell(commands[word]())

    def _reported(self, status: messages.WorkerStatus) -> Any:
        entry = FinalReport(
            self.journal.now(),
            status.component_id,
            status.shown,
            None if status.status is None else status.status.value,
            status.generation,
            status.restart_count,
            status.streak_count,
            None if status.next_attempt_in_s is None else status.next_attempt_in_s * self.plan.speed,
            alive=status.pid is not None and Path(f"/proc/{status.pid}").exists(),
            stable=self.recorder.is_stable(status.component_id),
            waits=bool(status.waits_for),
        )
        return msgspec.to_builtins(entry)


class _Receiver:
    """Passes each message to a function."""

    def __init__(self, take: Callable[[Any], object]) -> None:
        self._take = take

    def tell(self, message: Any) -> None:
        """Pass the message on."""
        self._take(message)


def _opened(plan: RealRunPlan, inheritance: Inheritance | None) -> SqlStore:
    """The store; after an upgrade it is waited for, as `rekindle run` does."""
    taken = None if inheritance is None else inheritance.take("store_lock", type(None))
    while True:
        try:
            return open_store(
                plan.database,
                busy_timeout_ms=BUSY_MS,
                lock=None if taken is None else taken[1]["lock"],
            )
        except StoreUnavailableError:
            if taken is None:
                raise
            time.sleep(BUSY_MS / 1000)


def _run(launcher: Launcher, inheritance: Inheritance | None) -> None:
    if inheritance is None:
        sys.stdout.write('{"ready": true}\n')
        sys.stdout.flush()
        with open(0, "rb", buffering=0, closefd=False) as orders:
            if not orders.readline():
                return
    ScenarioHost(RealRunPlan.read(Path(sys.argv[1])), launcher, inheritance).run()


def main() -> None:
    """Run until standard input ends; the first thread starts the workers, since it outlives an upgrade."""
    # Ctrl-C reaches the whole process group; the parent process decides when this one ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    inheritance = take_over()
    launcher = Launcher(own_thread=False)
    outcome: Future[None] = Future()

    def work() -> None:
        try:
            _run(launcher, inheritance)
            outcome.set_result(None)
        except BaseException as error:  # noqa: BLE001  # raised in the first thread
            outcome.set_exception(error)
        finally:
            launcher.close(0.0)

    threading.Thread(target=work, name="rekindle-host", daemon=True).start()
    launcher.work()
    outcome.result()


if __name__ == "__main__":
    main()
