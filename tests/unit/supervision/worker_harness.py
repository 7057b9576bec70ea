"""One worker with everything round it, in miniature: proxy, monitor, persistence actor and timers are queues.

The pure modules run as they are. What the actors would tell each other waits in a queue per
sender until a test delivers it, in any order between the senders.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from tests.unit.builders import crash, silence

from rekindle.actors import supervision
from rekindle.actors.deaths.death import Cause, Death, Exit
from rekindle.actors.facts.health_status import Status
from rekindle.actors.facts.records import DeathRecord, Record, RememberedWorker
from rekindle.actors.messages.internal.to_supervisor import BackoffElapsed, HealthSustained, RunOvertime
from rekindle.actors.rules import stop_ladder
from rekindle.actors.rules.restarts import RestartState
from rekindle.actors.rules.stop_ladder import Absent, Alive, Spawning, Terms
from rekindle.actors.spec.worker_spec import WorkerSpec
from rekindle.actors.supervision.worker import (
    Announce,
    AwaitSave,
    BackingOff,
    CancelTimers,
    CompareHealth,
    Effect,
    Failed,
    Halt,
    KeepRecord,
    Launch,
    LookAtClock,
    ReleaseJobs,
    ReleaseWork,
    ReportFailed,
    ReportStop,
    Schedule,
    SetCause,
    SetIdle,
    ShowScheduled,
    StopMonitoring,
    SupervisedWorker,
    WorkerStep,
    World,
)
from rekindle.persistence import MemoryStore

News = Callable[[SupervisedWorker], WorkerStep]


@dataclass
class Watched:
    """What the monitor holds of the worker."""

    generation: int
    alive: bool = True


class WorkerHarness:
    """A worker, and what happens to it."""

    def __init__(self, spec: WorkerSpec) -> None:
        self.worker = SupervisedWorker(spec)
        self.now_ms = 1_000_000
        self.stopping = self.paused = False
        self.store = MemoryStore()
        """What is stored once everything is saved."""
        self.unsaved: list[Record] = []
        """What the worker does not yet know to be saved."""
        self.process: stop_ladder.State = Absent()
        self.watched: Watched | None = None
        self.from_proxy: deque[News] = deque()
        self.from_monitor: deque[News] = deque()
        self.from_persistence: deque[News] = deque()
        self.timers: dict[type, BackoffElapsed | HealthSustained] = {}
        self.cancelled: list[BackoffElapsed | HealthSustained] = []
        self.overdue: list[int] = []
        self.effects: list[Effect] = []
        self.launches: list[int] = []
        self.rests = 0
        self._terms = Terms(spec.stop, has_channel=True)

    @property
    def world(self) -> World:
        """The moment; both clocks show the same."""
        return World(now_ms=self.now_ms, wall_ms=self.now_ms, stopping=self.stopping, paused=self.paused)

    # ── the Supervisor ───────────────────────────────────────────────────────────────────

    def take(self, news: News) -> tuple[Effect, ...]:
        """Give the worker an input, and carry out what follows."""
        step = news(self.worker)
        self.worker = step.worker
        self.effects += step.effects
        for effect in step.effects:
            self._perform(effect)
        return step.effects

    def _perform(self, effect: Effect) -> None:
        match effect:
            case Launch(generation=generation):
                assert isinstance(self.process, Absent), "two processes at a time"
                assert not self.stopping
                assert not self.paused
                self.launches.append(generation)
                self.watched = Watched(generation)
                self._proxy(stop_ladder.StartOrdered(generation))
            case Halt(generation=generation, urgency=urgency):
                self._proxy(stop_ladder.StopOrdered(generation, urgency))
            case Schedule(message=RunOvertime()) | LookAtClock() | ShowScheduled():
                raise AssertionError("this worker has no schedule")
            case Schedule(message=message):
                assert not isinstance(message, RunOvertime)
                self._cancel(type(message))
                self.timers[type(message)] = message
            case AwaitSave(generation=generation):
                self.overdue.append(generation)
            case CancelTimers():
                self._cancel(BackoffElapsed)
                self._cancel(HealthSustained)
            case KeepRecord(record=record):
                self.store.commit([record])
                self.unsaved.append(record)
            case StopMonitoring():
                self.watched = None
            case ReportFailed():
                if self.watched is not None:
                    self.watched.alive = False
            case CompareHealth(found=found):
                self._examined(found)
            case ReportStop():
                self.rests += 1
            case Announce() | SetIdle() | SetCause() | ReleaseJobs() | ReleaseWork():
                pass

    def _cancel(self, kind: type) -> None:
        timer = self.timers.pop(kind, None)
        if timer is not None:
            self.cancelled.append(timer)

    # ── the proxy and its process ────────────────────────────────────────────────────────

    def _proxy(self, trigger: stop_ladder.Trigger) -> None:
        step = stop_ladder.advance(self.process, trigger, self._terms)
        self.process = step.state
        for effect in step.effects:
            if isinstance(effect, stop_ladder.TellGone):
                self.from_proxy.append(self._gone(effect))

    def _gone(self, told: stop_ladder.TellGone) -> News:
        return lambda w: supervision.process_gone(w, told.generation, told.exit, told.forced, self.world)

    def spawned(self) -> None:
        """The process that was asked for is there."""
        if isinstance(self.process, Spawning):
            generation = self.process.generation
            self._proxy(stop_ladder.Started(generation, 77))
            self.from_proxy.append(lambda w: supervision.process_started(w, generation, 77, self.world))

    def spawn_fails(self) -> None:
        """The process that was asked for cannot be had."""
        if isinstance(self.process, Spawning):
            generation = self.process.generation
            self._lost(crash(generation, cause=Cause.SPAWN_FAILED, code=None))
            self._proxy(stop_ladder.Gone(generation, Exit()))

    def ends(self, exit_: Exit = Exit(1), *, healthy_for_ms: int = 0) -> None:  # noqa: B008
        """The process ends, by itself or on request."""
        if not isinstance(self.process, Absent | Spawning):
            generation = self.process.generation
            self._lost(crash(generation, code=exit_.code, signal=exit_.signal, healthy_for_ms=healthy_for_ms))
            self._proxy(stop_ladder.Gone(generation, exit_))

    def rung_elapses(self) -> None:
        """A step of the ladder has waited long enough."""
        if isinstance(self.process, stop_ladder.BeingStopped):
            self._proxy(stop_ladder.RungElapsed(self.process.generation, self.process.step))

    # ── the monitor ──────────────────────────────────────────────────────────────────────

    def _lost(self, death: Death) -> None:
        if self.watched is not None and self.watched.alive and self.watched.generation == death.generation:
            self.watched.alive = False
            self.from_monitor.append(lambda w: supervision.died(w, death, self.world))

    def falls_silent(self) -> None:
        """The heartbeats stop, and the process does not."""
        if self.watched is not None and isinstance(self.process, Alive):
            self._lost(silence(self.watched.generation))

    def reports(self, status: Status) -> None:
        """The health of the living worker changes."""
        if self.watched is not None and self.watched.alive:
            generation = self.watched.generation
            self.from_monitor.append(lambda w: supervision.health_changed(w, generation, status))

    def _examined(self, found: int | None) -> None:
        if self.watched is not None and found != self.watched.generation:
            self._lost(crash(self.watched.generation, code=None))

    # ── the persistence actor and the timers ──────────────────────────────────────────────────────

    def commit(self) -> None:
        """The store has taken what had gathered."""
        records, self.unsaved = self.unsaved, []
        self.from_persistence += [self._kept(r.generation) for r in records if isinstance(r, DeathRecord)]

    def _kept(self, generation: int) -> News:
        return lambda w: supervision.kept(w, generation, self.world)

    def fire(self, timer: BackoffElapsed | HealthSustained) -> tuple[Effect, ...]:
        """A timer's message arrives, perhaps after it was cancelled."""
        if self.timers.get(type(timer)) == timer:
            del self.timers[type(timer)]
        if isinstance(timer, BackoffElapsed):
            return self.take(lambda w: supervision.backoff_elapsed(w, timer, self.world))
        return self.take(lambda w: supervision.sustained(w, timer.generation, self.world))

    def save_overdue(self) -> None:
        """The store has not answered in time."""
        overdue, self.overdue = self.overdue, []
        for generation in overdue:
            self.take(self._kept(generation))

    def deliver(self, queue: deque[News]) -> None:
        """The next of a sender's messages arrives."""
        if queue:
            self.take(queue.popleft())

    def reconcile(self) -> None:
        """The Supervisor was replaced and asks the proxy what runs."""
        self.cancelled += self.timers.values()
        self.timers.clear()
        self.overdue.clear()
        if isinstance(self.process, Spawning):
            return self.spawned()  # the answer comes once the spawn is over
        found = None if isinstance(self.process, Absent) else self.process.generation
        self.from_proxy.append(self._reported(found, told=max(self.launches, default=0)))
        return None

    def _reported(self, found: int | None, told: int) -> News:
        def news(worker: SupervisedWorker) -> WorkerStep:
            if worker.lingering is not None and told < worker.lingering:
                return WorkerStep(worker)  # what was asked for since is still on its way to the proxy
            return supervision.reconcile(worker, found, self.world)

        return news

    # ── what tests ask ───────────────────────────────────────────────────────────────────

    def settle(self, *, spawns: bool = True) -> WorkerHarness:
        """Everything that is under way arrives, short of the backoff."""
        for _ in range(5):
            if spawns:
                self.spawned()
            self.commit()
            for queue in (self.from_monitor, self.from_proxy, self.from_persistence):
                while queue:
                    self.deliver(queue)
        return self

    def come_to_an_end(self, *, spawns: bool = True) -> None:
        """All waits end: ladders, backoffs, pending records."""
        for _ in range(10):
            self.settle(spawns=spawns)
            if isinstance(self.process, stop_ladder.BeingStopped | stop_ladder.Unkillable):
                self.ends(Exit(signal=9))
            if BackoffElapsed in self.timers:
                self.fire(self.timers[BackoffElapsed])
            self.save_overdue()

    @property
    def stored(self) -> RememberedWorker:
        """What the store remembers of the worker."""
        return self.store.load().workers.get(self.worker.id, RememberedWorker())

    @property
    def counters(self) -> RestartState:
        """The counters in memory."""
        return self.worker.restarts

    @property
    def backing_off(self) -> BackingOff:
        """The phase, which must be the wait before a restart."""
        assert isinstance(self.worker.phase, BackingOff)
        return self.worker.phase

    @property
    def failure(self) -> str | None:
        """Why the worker is given up, if it is."""
        return self.worker.phase.reason if isinstance(self.worker.phase, Failed) else None
