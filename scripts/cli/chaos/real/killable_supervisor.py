"""A supervisor of a real run, to be killed: `python -m rekindle.cli.chaos.real.killable_supervisor FOLDER`.

Runs the plan in FOLDER and records what its actors do in FOLDER/history. It reads orders from
standard input, one JSON line each, and answers on standard output. It waits for an order to open
the store and for another one to begin, and ends when standard input ends.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from rekindle.actors import System, messages
from rekindle.actors.messages.internal.to_monitor import FrameReceived
from rekindle.actors.messages.internal.to_supervisor import BackoffElapsed
from rekindle.actors.simulation import Phase
from rekindle.actors.simulation.faulty_store import FaultyStore
from rekindle.actors.simulation.observer import event_entry
from rekindle.actors.simulation.scenarios.history import (
    EventsStored,
    Ordered,
    Reported,
    Stored,
    SupervisorStarted,
)
from rekindle.actors.simulation.scenarios.jobs.job_entries import JobReleased
from rekindle.actors.simulation.scenarios.moves import DatabaseState
from rekindle.actors.simulation.scripted.heartbeats import HEALTHY
from rekindle.actors.spec.policies.stop_policy import Urgency
from rekindle.persistence import open_store

from .journal import ActorRecorder, Journal, RecordingRuntime
from .plan import Plan

BUSY_MS = 200
"""How long a commit waits for the lock of the database."""


class RecordingSystem(System):
    """A system whose actors are recorded."""

    def __init__(self, plan: Plan, store: FaultyStore, recorder: ActorRecorder) -> None:
        super().__init__(
            plan.specs(), store=store.as_store(), max_concurrent_starts=plan.max_concurrent_starts
        )
        self._recorder = recorder

    def _make_runtime(self) -> RecordingRuntime:
        return RecordingRuntime(self._recorder)


class Host:
    """Carries out the orders of the scenario."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.journal = Journal(plan)
        self.recorder = ActorRecorder(plan, self.journal, self._reached)
        real = open_store(plan.database, busy_timeout_ms=BUSY_MS)
        committed = self.recorder.committed
        self.store = FaultyStore(real, now=self.journal.now, note=self._stored, committed=committed)
        self.system = RecordingSystem(plan, self.store, self.recorder)
        self._lock = threading.Lock()

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
        note, now = self.journal.note, self.journal.now
        self.system.subscribe(_Receiver(lambda event: note(event_entry(now(), event))))
        self.send({"mark": self.system.mark})
        begin = json.loads(sys.stdin.readline() or "null")
        if begin is not None:
            self._begin(begin)
            for line in sys.stdin:
                self._carry_out(json.loads(line))
            self.journal.note(Ordered(self.journal.now(), "shutdown"))
        self.system.stop()

    def _begin(self, order: dict[str, Any]) -> None:
        self.plan.epoch = order["epoch"]
        self.journal.note(SupervisorStarted(self.journal.now(), order["life"], self.journal.wall_now()))
        self.system.start()

    def _carry_out(self, order: dict[str, Any]) -> None:
        match order["do"]:
            case "arm":
                self.recorder.arm(Phase(order["phase"]), order["of"], order["number"], deadly=order["deadly"])
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
            case "report":
                report = self.system.report()
                workers = [self._reported(each) for each in report.workers]
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
        entry = Reported(
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


def main() -> None:
    """Run until standard input ends."""
    # Ctrl-C reaches the whole process group; the parent process decides when this one ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdout.write('{"ready": true}\n')
    sys.stdout.flush()
    if sys.stdin.readline():
        Host(Plan.read(Path(sys.argv[1]))).run()


if __name__ == "__main__":
    main()
