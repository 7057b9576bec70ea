"""Pure: the state that follows from a history, entry by entry.

`Facts` follows a history and knows at every point which processes live, which state of each worker is
wanted, what was counted and what of it is in the store. It shares no code with what it checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ...spec.worker_spec import WindowMode, WorkerSpec
from .history import (
    AnyEntry,
    Decided,
    Ended,
    EventPublished,
    Moved,
    Ordered,
    Spawned,
    SpawnRefused,
    Stored,
    StreakEnded,
    SupervisorEnded,
    SupervisorStarted,
    TimerDropped,
    TimerFired,
    TimerSet,
)


@dataclass(slots=True)
class Counters:
    """The counters of a worker's restarts."""

    restarts: int = 0
    streak: int = 0
    failed: bool = False
    last_restart: float | None = None
    """In memory: seconds of the scenario. In the store: wall-clock milliseconds."""
    deaths: list[float] = field(default_factory=list)
    """Likewise."""

    def clear(self) -> None:
        """An operator's reset."""
        self.restarts = self.streak = 0
        self.failed = False
        self.last_restart = None
        self.deaths.clear()

    def count(self, action: str, at: float, streak_cleared: bool) -> None:
        """A death and its decision."""
        if streak_cleared:
            self.streak = 0
        if action == "restart":
            self.restarts += 1
            self.streak += 1
            self.last_restart = at
        elif action == "mark_failed":
            self.failed = True


@dataclass(slots=True)
class WorkerFacts:
    """The state of one worker. Generations are those of the present life of the supervisor."""

    spec: WorkerSpec
    living: int | None = None
    """The generation of its living process."""
    spawned: set[int] = field(default_factory=set)
    refused: set[int] = field(default_factory=set)
    ended: dict[int, Ended] = field(default_factory=dict)
    decided: dict[int, Decided] = field(default_factory=dict)
    excused: set[int] = field(default_factory=set)
    """Ended while being stopped: not a death."""
    stored: set[int] = field(default_factory=set)
    """Generations with a death in the store, of all lives."""
    is_ending: bool = False
    """It is being stopped and has not been started since."""
    stopped_at: float | None = None
    failed_at: float | None = None
    paused_at: float | None = None
    paused_until: float | None = None
    left: bool = False
    """The last death was not followed by a restart."""
    not_before: float | None = None
    """When the delay that was decided last is over, unless an operator gave an order since."""
    memory: Counters = field(default_factory=Counters)
    store: Counters = field(default_factory=Counters)
    reset_wall_ms: int = -1
    pending: int = 0
    """Restarts that are pending now."""
    chain: tuple[int, str] = (0, "pending")
    """The generation and status of the last status event."""
    healthy_since: float | None = None
    told_started: int = 0
    told_died: int = 0
    sent_garbage: bool = False


class Facts:
    """The state that follows from a history so far."""

    def __init__(self, specs: Iterable[WorkerSpec]) -> None:
        self.workers = {spec.id: WorkerFacts(spec) for spec in specs}
        self.life = 0
        self.is_up = False
        self.paused_at: float | None = None
        self.paused_until: float | None = None
        self.shut_down_at: float | None = None
        self.an_actor_raised = False
        self.told_number: int | None = None
        self.stored_pauses: set[str] = set()
        """Ids that are paused in the store; the empty id stands for the whole system."""
        self.stored_ends: dict[str, int] = {}
        """When these pauses end by themselves, on the wall clock."""

    def take(self, entry: AnyEntry) -> None:
        """Follow the history by one entry."""
        follow = _FOLLOW.get(type(entry))
        if follow is not None:
            follow(self, entry)

    @property
    def everything_is_told(self) -> bool:
        """Whether every decided death was also published; a slow store delays events."""
        return all(each.told_died >= max(each.decided, default=0) for each in self.workers.values())

    def _each(self, id_: str | None) -> Iterable[WorkerFacts]:
        return self.workers.values() if id_ is None else (self.workers[id_],)

    # ── supervisors ──────────────────────────────────────────────────────────────────────

    def _started(self, entry: SupervisorStarted) -> None:
        self.life = entry.life
        self.is_up = True
        self.shut_down_at = None
        self.an_actor_raised = False
        self.told_number = None
        self.paused_at = entry.at if "" in self.stored_pauses else None
        self.paused_until = self._stored_end("", entry)
        for id_, worker in self.workers.items():
            self.workers[id_] = _remembered(worker, entry, id_ in self.stored_pauses)
            self.workers[id_].paused_until = self._stored_end(id_, entry)

    def _stored_end(self, id_: str, entry: SupervisorStarted) -> float | None:
        """When a pause that an earlier supervisor accepted ends for this one."""
        end = self.stored_ends.get(id_)
        return None if end is None else entry.at + max(0, end - entry.wall_ms) / 1000

    def _ended_supervisor(self, entry: SupervisorEnded) -> None:
        self.is_up = False

    # ── orders ───────────────────────────────────────────────────────────────────────────

    def _ordered(self, entry: Ordered) -> None:
        for worker in self._each(entry.worker):
            worker.not_before = None
        match entry.order:
            case "stop" | "shutdown":
                if entry.order == "shutdown":
                    self.shut_down_at = entry.at
                for worker in self._each(entry.worker):
                    if (
                        worker.failed_at is None
                    ):  # a failed worker is down already, and stays down because it failed
                        worker.stopped_at = entry.at
                    _let_end(worker)
            case "pause":
                self._paused(entry)
            case "resume" if entry.worker is None:
                self.paused_at = self.paused_until = None
            case "resume":
                for worker in self._each(entry.worker):
                    worker.paused_at = worker.paused_until = None
            case "start":
                for worker in self._each(entry.worker):
                    worker.stopped_at = None
                    worker.left = False
            case "reset" | "restart":
                for worker in self._each(entry.worker):
                    _reset(worker, entry)
            case _:
                pass

    def _paused(self, entry: Ordered) -> None:
        until = None if entry.for_s is None else entry.at + entry.for_s
        if entry.worker is None:
            self.paused_at, self.paused_until = entry.at, until
        else:
            worker = self.workers[entry.worker]
            worker.paused_at, worker.paused_until = entry.at, until
        for worker in self._each(entry.worker):
            _let_end(worker)

    # ── processes and decisions ──────────────────────────────────────────────────────────

    def _spawned(self, entry: Spawned) -> None:
        worker = self.workers[entry.worker]
        worker.living = entry.generation
        worker.spawned.add(entry.generation)
        worker.is_ending = worker.sent_garbage = worker.left = False
        worker.not_before = None

    def _refused(self, entry: SpawnRefused) -> None:
        worker = self.workers[entry.worker]
        worker.refused.add(entry.generation)
        worker.is_ending = worker.left = False
        worker.not_before = None

    def _ended(self, entry: Ended) -> None:
        worker = self.workers[entry.worker]
        if worker.living == entry.generation:
            worker.living = None
        worker.ended[entry.generation] = entry
        if worker.is_ending or entry.by in ("supervisor", "cleanup"):
            worker.excused.add(entry.generation)

    def _decided(self, entry: Decided) -> None:
        worker = self.workers[entry.worker]
        if entry.generation in worker.decided:
            return  # repeated after an actor was restarted
        worker.decided[entry.generation] = entry
        worker.memory.count(entry.action, entry.at, entry.streak_cleared)
        worker.left = entry.action in ("none", "notify_only")
        worker.not_before = entry.at + entry.delay_ms / 1000 if entry.action == "restart" else None
        if entry.action == "held":
            self._held_back(worker.spec)
            return
        if worker.spec.restart.window_mode is WindowMode.SLIDING:
            worker.memory.deaths.append(entry.at)
        if entry.action == "mark_failed":
            worker.failed_at = entry.at

    def _held_back(self, spec: WorkerSpec) -> None:
        """A breaker is open: its workers start when it closes, not when their delays are over."""
        name = None if spec.breaker is None else spec.breaker.name
        for each in self.workers.values():
            if each.spec.breaker is not None and each.spec.breaker.name == name:
                each.not_before = None

    def _streak_ended(self, entry: StreakEnded) -> None:
        self.workers[entry.worker].memory.streak = 0

    def _stored(self, entry: Stored) -> None:
        if entry.kind == "meta":
            self._meta(entry)
            return
        worker = self.workers.get(entry.worker or "")
        if worker is None:
            return
        match entry.kind:
            case "death" if entry.generation not in worker.stored:
                worker.stored.add(entry.generation)
                worker.store.count(entry.action or "", entry.wall_ms, entry.streak_cleared)
                if entry.action != "held":
                    worker.store.deaths.append(entry.wall_ms)
            case "restarts":
                worker.store.restarts += entry.restarts
                worker.store.streak += entry.streak
                worker.store.last_restart = entry.wall_ms
            case "streak":
                worker.store.streak = 0
            case "reset":
                worker.store.clear()
                worker.reset_wall_ms = entry.wall_ms
            case _:
                pass

    def _meta(self, entry: Stored) -> None:
        name, _, id_ = (entry.worker or "").partition(":")
        if name == "worker_enabled":
            (self.stored_pauses.add if entry.value == "false" else self.stored_pauses.discard)(id_)
        elif name == "pause_until_wall_ms":
            self.stored_ends.pop(id_, None)
            if entry.value is not None:
                self.stored_ends[id_] = int(entry.value)

    # ── timers, events, faults ───────────────────────────────────────────────────────────

    def _timer_set(self, entry: TimerSet) -> None:
        self.workers[entry.worker].pending += 1

    def _timer_gone(self, entry: TimerDropped | TimerFired) -> None:
        self.workers[entry.worker].pending -= 1

    def _told(self, entry: EventPublished) -> None:
        self.told_number = entry.number if entry.number is not None else self.told_number
        worker = self.workers.get(entry.worker or "")
        if worker is None:
            return
        match entry.event:
            case "status_changed":
                worker.chain = (entry.generation, entry.new or "")
                since = entry.at if entry.since is None else entry.since
                worker.healthy_since = since if entry.new == "healthy" else None
            case "worker_started":
                worker.told_started = entry.generation
            case "worker_died":
                worker.told_died = entry.generation
            case _:
                pass

    def _moved(self, entry: Moved) -> None:
        if entry.word == "actor_raises":
            self.an_actor_raised = True
        if entry.word == "garbage":
            for worker in self._each(entry.worker):
                worker.sent_garbage = True


def _remembered(worker: WorkerFacts, entry: SupervisorStarted, paused: bool) -> WorkerFacts:
    """A worker at the start of a supervisor, which knows only what is in the store."""
    store = worker.store

    def moved(wall_ms: float) -> float:
        return entry.at - max(0.0, entry.wall_ms - wall_ms) / 1000

    memory = Counters(
        store.restarts,
        store.streak,
        store.failed,
        None if store.last_restart is None else moved(store.last_restart),
        [moved(at) for at in store.deaths[-100:] if at > worker.reset_wall_ms],
    )
    return WorkerFacts(
        worker.spec,
        living=worker.living,
        stored=worker.stored,
        failed_at=entry.at if store.failed else None,
        paused_at=entry.at if paused else None,
        memory=memory,
        store=store,
        reset_wall_ms=worker.reset_wall_ms,
    )


def _let_end(worker: WorkerFacts) -> None:
    """From now on its end is not a death, nor is an end that is not decided on yet."""
    worker.is_ending = True
    worker.excused |= worker.ended.keys() - worker.decided.keys()


def _reset(worker: WorkerFacts, entry: Ordered) -> None:
    worker.memory.clear()
    worker.failed_at = None
    if entry.order == "restart":
        worker.stopped_at = None
        worker.left = False
        _let_end(worker)
    elif worker.stopped_at is None and (worker.living is None or worker.living in worker.decided):
        worker.left = True  # it does not start by itself


_FOLLOW: dict[type, Callable[[Facts, Any], None]] = {
    SupervisorStarted: Facts._started,
    SupervisorEnded: Facts._ended_supervisor,
    Ordered: Facts._ordered,
    Spawned: Facts._spawned,
    SpawnRefused: Facts._refused,
    Ended: Facts._ended,
    Decided: Facts._decided,
    StreakEnded: Facts._streak_ended,
    Stored: Facts._stored,
    TimerSet: Facts._timer_set,
    TimerDropped: Facts._timer_gone,
    TimerFired: Facts._timer_gone,
    EventPublished: Facts._told,
    Moved: Facts._moved,
}
