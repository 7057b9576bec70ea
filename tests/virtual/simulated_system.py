"""A whole supervisor in virtual time: the real actors, scripted processes, a store in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Any, TypeVar

from rekindle.actors.deaths.death import Cause, Exit
from rekindle.actors.facts.health_status import Status
from rekindle.actors.facts.records import RememberedWorker
from rekindle.actors.messages import (
    Event,
    ReportStatus,
    Shutdown,
    StartWorkers,
    StatusChanged,
    StatusReport,
    StopResult,
    StopWorkers,
    WorkerDied,
    WorkersStopped,
    WorkerStatus,
)
from rekindle.actors.messages.internal.to_broker import Subscribe
from rekindle.actors.messages.internal.to_supervisor import BackoffElapsed
from rekindle.actors.ports import Receiver, Store
from rekindle.actors.simulation import (
    Behaviour,
    Script,
    ScriptedProcesses,
    SimulationRuntime,
    dies_after,
    runs,
)
from rekindle.actors.spec.policies.alert_policy import AlertPolicy
from rekindle.actors.spec.program import Command, PythonCall
from rekindle.actors.spec.worker_spec import WorkerSpec
from rekindle.actors.system.assembly import Actors, Options, assemble
from rekindle.persistence import MemoryStore

E = TypeVar("E", bound=Event)

W = "worker:tag:0"
"""The worker that most tests are about."""

CRASH = Exit(code=1)


def worker(
    id_: str = W,
    preset: str = "steady",
    *,
    run: Command | PythonCall | None = None,
    restart: Mapping[str, object] | None = None,
    health: Mapping[str, object] | None = None,
    **others: object,
) -> WorkerSpec:
    """A worker that sends health frames, under a preset."""
    run = run or PythonCall("app:run")
    return WorkerSpec.from_preset(id_, run, preset, restart=restart, health=health, **others)  # type: ignore[arg-type]


def lives(*planned: Behaviour, then: Behaviour | None = None) -> Script:
    """These lives one after the other, then the last one, or another one, for all later incarnations."""
    rest = planned[-1] if then is None else then
    return lambda generation: planned[generation - 1] if generation <= len(planned) else rest


def uptimes(*seconds: float) -> Script:
    """Incarnations that die after these times, one after the other; the one after them lives on."""
    return lives(*(dies_after(each) for each in seconds), then=runs())


def by_start(script: Script) -> Script:
    """The same lives by the number of the start: after a killed supervisor the generations have a gap."""
    starts = count(1)
    return lambda _generation: script(next(starts))


class Listener:
    """Records the messages that it receives, and when."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.received: list[tuple[float, Any]] = []

    def tell(self, message: object) -> None:
        """Record a message."""
        self.received.append((self._now(), message))

    @property
    def messages(self) -> list[Any]:
        """The messages without the times."""
        return [message for _, message in self.received]


class ScriptedProber:
    """Answers probes as the test decides."""

    def __init__(self) -> None:
        self.answer: Callable[[], None] = lambda: None

    def tell(self, message: object) -> None:
        """Take the request for a probe."""
        self.answer()


class SimulatedSystem:
    """A supervised system, and every event that it publishes."""

    def __init__(
        self,
        *specs: WorkerSpec,
        scripts: Mapping[str, Script] | Script | None = None,
        store: Store | None = None,
        seed: int = 0,
        max_concurrent_starts: int | None = None,
        event_linger_s: float = 0.0,
        alerts: AlertPolicy | None = None,
    ) -> None:
        self.specs = specs or (worker(),)
        by_id = (
            dict(scripts)
            if isinstance(scripts, Mapping)
            else {spec.id: scripts for spec in self.specs if scripts is not None}
        )
        self.scripts = {id_: by_start(script) for id_, script in by_id.items()}
        self.memory = store if isinstance(store, MemoryStore) else MemoryStore()
        self._store = store or self.memory
        self._seed = seed
        self._max_concurrent_starts = max_concurrent_starts
        self._event_linger_s = event_linger_s
        self._alerts = alerts
        self.prober = ScriptedProber()
        self._build(SimulationRuntime(seed))

    def _build(self, runtime: SimulationRuntime) -> None:
        self.runtime = runtime
        self.processes = ScriptedProcesses(runtime, self.scripts)
        self.listener = Listener(runtime.clock.monotonic)
        self.actors: Actors = assemble(
            self.specs,
            runtime=runtime,
            processes=self.processes,
            store=self._store,
            options=Options(
                max_concurrent_starts=self._max_concurrent_starts,
                event_linger_s=self._event_linger_s,
                alerts=self._alerts,
                prober=self.prober,
            ),
        )
        self.actors.broker.tell(Subscribe(self.listener))
        runtime.settle()

    def close(self) -> None:
        """End the actors."""
        self.runtime.close()

    def restart_application(self, *, away_s: float = 0.0) -> None:
        """Kill the application and start it again on the same store, with a new timeline."""
        wall_ms = self.runtime.clock.wall_ms()
        self.runtime.crash()
        runtime = SimulationRuntime(self._seed + 1)
        runtime.virtual_clock.wall_offset_ms = wall_ms + round(away_s * 1000)
        self._build(runtime)

    # ── time ─────────────────────────────────────────────────────────────────────────────

    @property
    def now(self) -> float:
        """Virtual seconds."""
        return self.runtime.clock.monotonic()

    def run(self, seconds: float) -> None:
        """Let time pass."""
        self.runtime.run_for(seconds)

    def run_to(self, moment: float) -> None:
        """Let time pass until then."""
        self.runtime.run_for(moment - self.now)

    # ── what a host does ─────────────────────────────────────────────────────────────────

    def tell(self, message: object) -> None:
        """Tell the Supervisor something, and let it act."""
        self.actors.supervisor.tell(message)
        self.runtime.settle()

    def ask(self, request: Callable[[Receiver], object]) -> Any:
        """The reply to a request that needs no time; None if there is none yet."""
        listener = Listener(self.runtime.clock.monotonic)
        self.tell(request(listener))
        return listener.messages[0] if listener.messages else None

    def start(self, *ids: str) -> SimulatedSystem:
        """Start these workers, or all of them."""
        self.tell(StartWorkers(ids or None))
        return self

    def stop(self, *ids: str, within: float = 20.0) -> tuple[StopResult, ...]:
        """Stop these workers, or all of them, and wait; `stopped_at` says when they had."""
        return self._await_stop(lambda reply: StopWorkers(ids or None, reply), within)

    def shut_down(self, within: float = 20.0) -> tuple[StopResult, ...]:
        """Stop everything for good, and wait."""
        return self._await_stop(lambda reply: Shutdown(reply), within)

    def _await_stop(self, request: Callable[[Receiver], object], within: float) -> tuple[StopResult, ...]:
        listener = Listener(self.runtime.clock.monotonic)
        self.actors.supervisor.tell(request(listener))
        self.runtime.run_until(lambda: bool(listener.received), self.now + within)
        answer = listener.messages[0]
        assert isinstance(answer, WorkersStopped)
        return answer.results

    # ── what a test observes ─────────────────────────────────────────────────────────────

    def report(self) -> StatusReport:
        """The status of the whole system, as the Supervisor reports it."""
        report = self.ask(ReportStatus)
        assert isinstance(report, StatusReport)
        return report

    def status(self, id_: str = W) -> WorkerStatus:
        """The status of one worker, as the Supervisor reports it."""
        return next(each for each in self.report().workers if each.component_id == id_)

    def starts(self, id_: str = W) -> list[float]:
        """When processes of this worker were started."""
        return [at for at, who, _ in self.processes.starts if who == id_]

    def ends(self, id_: str = W) -> list[float]:
        """When they ended."""
        return [at for at, who, _ in self.processes.ends if who == id_]

    def delays(self, id_: str = W) -> list[float]:
        """How long after each death the next start came."""
        deaths = [at for at, death in self.events(WorkerDied) if death.component_id == id_]
        return [start - max(d for d in deaths if d <= start) for start in self.starts(id_)[1:]]

    def events(self, kind: type[E]) -> list[tuple[float, E]]:
        """The events of one kind, with their times."""
        return [(at, event) for at, event in self.listener.received if isinstance(event, kind)]

    def deaths(self, id_: str = W) -> list[WorkerDied]:
        """The deaths that were announced, without those of a former run."""
        found = [event for _, event in self.events(WorkerDied) if event.component_id == id_]
        return [event for event in found if event.death.cause is not Cause.SUPERVISOR_LOST]

    def changes(self, id_: str = W) -> list[tuple[float, Status]]:
        """When the worker's health changed, and to what."""
        return [(at, event.new) for at, event in self.events(StatusChanged) if event.component_id == id_]

    def restart_timers(self, id_: str = W) -> list[float]:
        """The pending restarts of a worker: when they are due."""
        pending = self.runtime.virtual_timers.pending()
        return [
            due
            for due, message in pending
            if isinstance(message, BackoffElapsed) and message.component_id == id_
        ]

    def stored(self, id_: str = W) -> RememberedWorker:
        """What the store has of a worker."""
        return self._store.load().workers.get(id_, RememberedWorker())


def ids(number: int) -> tuple[str, ...]:
    """This many component ids."""
    return tuple(f"worker:tag:{index}" for index in range(number))


def workers(number: int, preset: str = "steady", **settings: Any) -> Iterable[WorkerSpec]:
    """This many workers of one kind."""
    return tuple(worker(id_, preset, **settings) for id_ in ids(number))
