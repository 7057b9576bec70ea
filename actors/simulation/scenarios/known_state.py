"""Pure: the state that follows from a history, entry by entry.

`Facts` follows a history and knows at every point which processes live, which state of each worker is
wanted, what was counted and what of it is in the store. It shares no code with what it checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...spec.policies.restart_policy import WindowMode
from ...spec.worker_spec import WorkerSpec
from .history import (
    Announced,
    AnyEntry,
    DatabaseChanged,
    Decided,
    Ended,
    EventPublished,
    HostResumed,
    Moved,
    Ordered,
    SpawnBegun,
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
from .run_entries import RunRecorded
from .worker_facts import (
    Held,
    WorkerFacts,
    begins_anew,
    count_raises,
    follow_announcement,
    follow_store,
    is_uncounted,
    let_end,
    remembered,
    reset,
)


class Facts:
    """The state that follows from a history so far."""

    def __init__(self, specs: Iterable[WorkerSpec]) -> None:
        self.workers = {spec.id: WorkerFacts(spec) for spec in specs}
        self.scheduled = frozenset(
            id_ for id_, each in self.workers.items() if each.spec.schedule is not None
        )
        """The workers that run by the clock: most rules are about workers that should always run."""
        self.life = 0
        self.life_began_at = -1.0
        self.is_up = False
        self.paused_at: float | None = None
        self.paused_until: float | None = None
        self.shut_down_at: float | None = None
        self.an_actor_raised = False
        self.raises: dict[str, int] = {}
        """How often each actor is made to raise in this life of the supervisor."""
        self.most_starts: int | None = None
        """How many workers may start at the same time."""
        self.actors_are_heard = False
        """The history has what actors announce: it is one of virtual time."""
        self.database_since: float | None = 0.0
        """Since when the database has been available; None while it is not."""
        self.slept_from = self.resumed_at = -1.0
        """The last time in which the host slept."""
        self.clock_range = (0.0, 0.0)
        """How far the wall clock was set back and forward, in seconds."""
        self._clock_is_off_s = 0.0
        self.told_number: int | None = None
        self.stored_breakers: set[str] = set()
        self.open_breakers: set[str] = set()
        """As the actors announce it."""
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
    def starts_are_paced(self) -> bool:
        """Whether starts wait for each other."""
        return self.most_starts is not None

    def idles_from_its_start(self, worker: WorkerFacts) -> bool:
        """Whether a start of it that waits its turn happens in a pause, too: it idles once it is there."""
        return worker.spec.pause_mode == "idle" and (self.starts_are_paced or bool(worker.spec.after))

    @property
    def everything_is_told(self) -> bool:
        """Whether every decided death was published."""
        return all(each.told_died >= each.last_decided for each in self.workers.values())

    def is_paused(self, id_: str, at: float) -> bool:
        """Whether a worker is paused at this time, by itself or with everything."""
        worker = self.workers[id_]
        for since, until in ((worker.paused_at, worker.paused_until), (self.paused_at, self.paused_until)):
            if since is not None and (until is None or at < until):
                return True
        return False

    def pauses_of(self, worker: WorkerFacts) -> list[Held]:
        """Its own pause and that of everything, in words, with beginning and end."""
        own = ("paused", worker.paused_at, worker.paused_until)
        return [own, ("paused with everything", self.paused_at, self.paused_until)]

    def each(self, id_: str | None) -> Iterable[WorkerFacts]:
        """One worker, or all of them."""
        return self.workers.values() if id_ is None else (self.workers[id_],)

    # ── supervisors ──────────────────────────────────────────────────────────────────────

    def _started(self, entry: SupervisorStarted) -> None:
        self.life = entry.life
        self.life_began_at = entry.at
        self.is_up = True
        self.shut_down_at = None
        self.an_actor_raised = False
        self.raises.clear()
        self.database_since = entry.at
        self.told_number = None
        self.open_breakers = set(self.stored_breakers)
        self.paused_at = entry.at if "" in self.stored_pauses else None
        self.paused_until = self._stored_end("", entry)
        for id_, worker in self.workers.items():
            breaker = worker.spec.breaker
            self.workers[id_] = remembered(
                worker,
                entry,
                paused=id_ in self.stored_pauses,
                breaker_is_open=breaker is not None and breaker.name in self.stored_breakers,
            )
            self.workers[id_].paused_until = self._stored_end(id_, entry)

    def _stored_end(self, id_: str, entry: SupervisorStarted) -> float | None:
        """When a pause that an earlier supervisor accepted ends for this one."""
        end = self.stored_ends.get(id_)
        return None if end is None else entry.at + max(0, end - entry.wall_ms) / 1000

    # ── orders ───────────────────────────────────────────────────────────────────────────

    def _ordered(self, entry: Ordered) -> None:
        for worker in self.each(entry.worker):
            worker.not_before = None
        match entry.order:
            case "stop" | "shutdown":
                self._end(entry)
                if entry.order == "shutdown":
                    self.shut_down_at = entry.at
                for worker in self.each(entry.worker):
                    if worker.failed_at is None:  # a failed worker is down, and stays so because it failed
                        worker.stopped_at = entry.at
                    let_end(worker)
            case "pause":
                self._paused(entry)
            case "resume" if entry.worker is None:
                self.paused_at = self.paused_until = None
            case "resume":
                for worker in self.each(entry.worker):
                    worker.paused_at = worker.paused_until = None
            case "start":
                for worker in self.each(entry.worker):
                    worker.stopped_at = None
                    worker.left = False
            case "reset" | "restart":
                if entry.order == "restart":
                    self._end(entry)
                for worker in self.each(entry.worker):
                    reset(worker, entry)
            case "renew":
                self._end(entry, is_excused=True)
            case _:
                pass

    def _end(self, entry: Ordered, *, is_excused: bool = False) -> None:
        """The processes of these workers are to end, or to idle."""
        for worker in self.each(entry.worker):
            worker.ordered_at = entry.at
            worker.urgency = max(worker.urgency if worker.has_process else 0, entry.urgency)
            worker.is_to_end |= entry.order != "pause" or worker.spec.pause_mode == "stop"
            if is_excused:
                let_end(worker)

    def _paused(self, entry: Ordered) -> None:
        self._end(entry, is_excused=True)
        until = None if entry.for_s is None else entry.at + entry.for_s
        if entry.worker is None:
            self.paused_at, self.paused_until = entry.at, until
        else:
            worker = self.workers[entry.worker]
            worker.paused_at, worker.paused_until = entry.at, until

    # ── processes and decisions ──────────────────────────────────────────────────────────

    def _begun(self, entry: SpawnBegun) -> None:
        worker = self.workers[entry.worker]
        worker.begun, worker.begun_at = entry.generation, entry.at
        self._begins(worker)

    def _spawned(self, entry: Spawned) -> None:
        worker = self.workers[entry.worker]
        worker.living = entry.generation
        worker.spawned_at = worker.status_since = worker.process_since = entry.at
        worker.status = "pending"
        if self.actors_are_heard:
            worker.healthy_since = None
        worker.spawned.add(entry.generation)
        if worker.begun == entry.generation:
            worker.spawned_at = worker.begun_at  # what was ordered since then is meant for it
        else:
            self._begins(worker)

    def _begins(self, worker: WorkerFacts) -> None:
        """A new process, for which earlier orders are not meant, unless it is stopped in this moment."""
        worker.is_ending = worker.is_to_end = worker.stopped_at is not None
        worker.urgency = worker.urgency if worker.is_to_end else 0
        worker.is_done = worker.resumes = worker.sent_garbage = worker.left = False
        worker.reset_when_failed, worker.not_before = False, None

    def _refused(self, entry: SpawnRefused) -> None:
        worker = self.workers[entry.worker]
        worker.refused.add(entry.generation)
        worker.refused_at = entry.at
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
        if entry.generation in worker.decided and self.is_up:
            return  # repeated after an actor was restarted
        worker.decided[entry.generation] = entry
        if worker.was_lost(entry.generation):
            return  # history only
        at = entry.at if entry.died_at is None else entry.died_at
        worker.is_done = entry.action == "none" and entry.cause == "exited" and entry.code == 0
        if (worker.is_done and worker.spec.is_task) or begins_anew(entry):
            worker.memory.clear()  # a task that is done has the whole budget for its next execution
        worker.memory.count(entry.action, at, entry.streak_cleared)
        worker.left = entry.action in ("none", "notify_only")
        slept = self.resumed_at >= entry.at - 0.002  # a pause that ended meanwhile may end after it
        worker.resumes = worker.left and (slept or self.is_paused(entry.worker, entry.at))
        restarts = entry.action in ("restart", "restart_uncounted")
        worker.not_before = at + entry.delay_ms / 1000 if restarts else None
        if entry.action == "held":
            self._held_back(worker.spec)
            return
        if entry.action == "restart_uncounted":
            worker.memory.boot += not entry.was_ready and not is_uncounted(worker.spec, entry)
            return
        if restarts:
            worker.memory.boot = 0
        if worker.spec.restart.window_mode is WindowMode.SLIDING:
            worker.memory.deaths.append(at)
        if entry.action == "mark_failed":
            worker.failed_at = entry.at

    def _held_back(self, spec: WorkerSpec) -> None:
        """A breaker is open: its workers start when it closes, not when their delays are over."""
        name = None if spec.breaker is None else spec.breaker.name
        for each in self.workers.values():
            if each.spec.breaker is not None and each.spec.breaker.name == name:
                each.not_before = None

    def _run(self, entry: RunRecorded) -> None:
        if entry.state == "running":  # each run has the whole budget
            self.workers[entry.worker].memory.clear()

    def _streak_ended(self, entry: StreakEnded) -> None:
        self.workers[entry.worker].memory.streak = 0

    def _stored(self, entry: Stored) -> None:
        if entry.kind == "meta":
            self._meta(entry)
        elif (worker := self.workers.get(entry.worker or "")) is not None:
            follow_store(worker, entry)

    def _meta(self, entry: Stored) -> None:
        name, _, id_ = (entry.worker or "").partition(":")
        if name == "worker_enabled":
            (self.stored_pauses.add if entry.value == "false" else self.stored_pauses.discard)(id_)
        elif name == "pause_until_wall_ms":
            self.stored_ends.pop(id_, None)
            if entry.value is not None:
                self.stored_ends[id_] = int(entry.value)
        elif name == "breaker":
            (self.stored_breakers.discard if entry.value is None else self.stored_breakers.add)(id_)

    # ── timers, events, faults ───────────────────────────────────────────────────────────

    def _timer_set(self, entry: TimerSet) -> None:
        self.workers[entry.worker].pending += 1

    def _timer_gone(self, entry: TimerDropped | TimerFired) -> None:
        self.workers[entry.worker].pending -= 1

    def _told(self, entry: EventPublished) -> None:
        self.told_number = entry.number if entry.number is not None else self.told_number
        if (worker := self.workers.get(entry.worker or "")) is None:
            return
        match entry.event:
            case "status_changed":
                worker.chain = (entry.generation, entry.new or "")
                since = entry.at if entry.since is None else entry.since
                if not self.actors_are_heard:
                    worker.healthy_since = since if entry.new == "healthy" else None
            case "worker_stopping" if worker.spec.membership:
                let_end(worker)
            case "worker_started":
                worker.told_started = entry.generation
            case "worker_died":
                worker.told_died = entry.generation
            case _:
                pass

    def _announced(self, entry: Announced) -> None:
        self.actors_are_heard = True
        if entry.event == "pause_ended":
            self._pause_ended(entry)
        elif entry.event == "breaker_opened":
            self.open_breakers.add(entry.about or "")
        elif entry.event == "breaker_closed":
            self.open_breakers.discard(entry.about or "")
        if (worker := self.workers.get(entry.worker or "")) is not None:
            follow_announcement(worker, entry)

    def _pause_ended(self, entry: Announced) -> None:
        """A pause has ended by itself, if its time is over; an order that ends it is recorded as such."""
        scope = self if entry.worker is None else self.workers[entry.worker]
        if scope.paused_until is not None and entry.at >= scope.paused_until - 0.002:
            scope.paused_at = scope.paused_until = None
            for worker in self.each(entry.worker):
                worker.not_before = None

    def _resumed(self, entry: HostResumed) -> None:
        began = entry.at - entry.slept_s
        if began > self.resumed_at + 0.002:
            self.slept_from = began
        self.resumed_at = entry.at
        if self.database_since:  # nothing was written meanwhile
            self.database_since += entry.slept_s

    def _database(self, entry: DatabaseChanged) -> None:
        self.database_since = entry.at if entry.state == "back" else None

    def _moved(self, entry: Moved) -> None:
        if entry.word == "actor_raises":
            self.an_actor_raised = True
            count_raises(self.raises, entry.what)
        if entry.word == "set_clock":
            self._clock_is_off_s += float(entry.what.split()[-1])
            low, high = self.clock_range
            self.clock_range = (min(low, self._clock_is_off_s), max(high, self._clock_is_off_s))
        if entry.word == "garbage":
            for worker in self.each(entry.worker):
                worker.sent_garbage = True


_FOLLOW: dict[type, Callable[[Facts, Any], None]] = {
    SupervisorStarted: Facts._started,
    SupervisorEnded: lambda facts, _entry: setattr(facts, "is_up", False),
    Ordered: Facts._ordered,
    SpawnBegun: Facts._begun,
    Spawned: Facts._spawned,
    SpawnRefused: Facts._refused,
    Ended: Facts._ended,
    Decided: Facts._decided,
    RunRecorded: Facts._run,
    StreakEnded: Facts._streak_ended,
    Stored: Facts._stored,
    TimerSet: Facts._timer_set,
    TimerDropped: Facts._timer_gone,
    TimerFired: Facts._timer_gone,
    EventPublished: Facts._told,
    Announced: Facts._announced,
    DatabaseChanged: Facts._database,
    HostResumed: Facts._resumed,
    Moved: Facts._moved,
}
