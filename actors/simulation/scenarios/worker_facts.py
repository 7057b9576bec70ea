"""Pure: the state of one worker that follows from a history."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...deaths.death import Cause
from ...spec.worker_spec import WorkerSpec
from .history import Announced, Decided, Ended, Ordered, Stored, SupervisorStarted

Held = tuple[str, float | None, float | None]
"""What keeps a worker from starting, since when and until when."""


@dataclass(slots=True)
class Counters:
    """The counters of a worker's restarts."""

    restarts: int = 0
    streak: int = 0
    failed: bool = False
    boot: int = 0
    """Restarts in a row after deaths before it was ready; only in memory."""
    last_restart: float | None = None
    """In memory: seconds of the scenario. In the store: wall-clock milliseconds."""
    due: float | None = None
    """When the delay of the last restart is over; only for the store."""
    deaths: list[float] = field(default_factory=list)
    """Likewise."""

    def clear(self) -> None:
        """An operator's reset."""
        self.restarts = self.streak = self.boot = 0
        self.failed = False
        self.last_restart = self.due = None
        self.deaths.clear()

    def count(self, action: str, at: float, streak_cleared: bool) -> None:
        """A death and its decision."""
        self.due = None
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
    reset_when_failed: bool = False
    """An operator lifted its failure and has not started it since."""
    paused_at: float | None = None
    paused_until: float | None = None
    left: bool = False
    """The last death was not followed by a restart."""
    resumes: bool = False
    """It was reset while it was down, or died during a pause: the end of a pause starts it."""
    is_done: bool = False
    """Its last execution ended well, and it is not restarted."""
    not_before: float | None = None
    """When the delay that was decided last is over, unless an operator gave an order since."""
    memory: Counters = field(default_factory=Counters)
    store: Counters = field(default_factory=Counters)
    is_in_store: bool = False
    """The store has counters for it; a reset creates none."""
    reset_wall_ms: int = -1
    pending: int = 0
    """Restarts that are pending now."""
    chain: tuple[int, str] = (0, "pending")
    """The generation and status of the last status event."""
    healthy_since: float | None = None
    status: str = "pending"
    """As the actors know it; published a little later."""
    status_since: float = 0.0
    was_healthy_since: float | None = None
    """Since when it had been healthy without a break at its last change."""
    survived: int | None = None
    """The generation of which was announced that it survives SIGKILL."""
    begun: int | None = None
    """The generation whose process was being started; it may be by now."""
    begun_at: float = -1.0
    urgency: int = 0
    """The firmest stop that was ordered since its start."""
    is_to_end: bool = False
    """An operator ordered the end of its process, also of one that is being started."""
    process_since: float = -1.0
    """When its latest process began to exist."""
    spawned_at: float = -1.0
    refused_at: float = -1.0
    """When a process of it could not be started."""
    ordered_at: float = -1.0
    """When an operator last ordered something that ends its process."""
    recycled_at: float = -1.0
    told_started: int = 0
    told_died: int = 0
    sent_garbage: bool = False

    @property
    def has_process(self) -> bool:
        """Whether its process lives, or is being started."""
        return self.living is not None or (self.begun is not None and self.begun not in self.spawned)

    @property
    def survives(self) -> bool:
        """Whether it lives, and was announced to survive SIGKILL."""
        return self.living is not None and self.survived == self.living

    @property
    def last_decided(self) -> int:
        """Its last death under this supervisor; what ended with the former one is published early."""
        return max((number for number in self.decided if not self.was_lost(number)), default=0)

    @property
    def last_death(self) -> Decided | None:
        """The last decision under this supervisor."""
        return self.decided.get(max(self.decided, default=0))

    def lets_start(self, other: WorkerSpec) -> bool:
        """Whether a worker that needs it may start: it is ready, or if that worker waits for it, done."""
        until = other.until.get(self.spec.id)
        must_be_done = self.spec.is_task if until is None else until == "done"
        return self.is_done or (not must_be_done and self.status == "healthy")

    @property
    def is_down(self) -> bool:
        """Whether it is to stay down: it failed, was stopped, or is not restarted."""
        return self.failed_at is not None or self.stopped_at is not None or self.left

    def was_lost(self, generation: int) -> bool:
        """Whether its death was recorded as that of its supervisor."""
        decision = self.decided.get(generation)
        return decision is not None and decision.cause == Cause.SUPERVISOR_LOST


def is_uncounted(spec: WorkerSpec, entry: Decided) -> bool:
    """Whether it exited with a code that no limit counts."""
    return entry.cause == Cause.EXITED and entry.code in spec.restart.uncounted_exit_codes


def begins_anew(entry: Decided) -> bool:
    """Whether its own limit was reached and its group escalated: its counters are cleared."""
    return "escalates to group" in entry.reason and entry.reason.startswith("Restart #1 ")


def remembered(
    worker: WorkerFacts, entry: SupervisorStarted, *, paused: bool, breaker_is_open: bool
) -> WorkerFacts:
    """A worker at the start of a supervisor, which knows only what is in the store."""
    store = worker.store
    if worker.spec.is_task:  # it runs again with each supervisor
        store = Counters()

    def moved(wall_ms: float) -> float:
        return entry.at - max(0.0, entry.wall_ms - wall_ms) / 1000

    memory = Counters(
        store.restarts,
        store.streak,
        store.failed,
        last_restart=None if store.last_restart is None else moved(store.last_restart),
        deaths=[moved(at) for at in store.deaths[-100:] if at > worker.reset_wall_ms],
    )
    wait_ms = None if store.due is None else store.due - entry.wall_ms
    longest_ms = worker.spec.restart.max_delay_s * 1000
    return WorkerFacts(
        worker.spec,
        living=worker.living,
        # A delay that an earlier supervisor decided still holds, however the clock was set meanwhile.
        not_before=None if wait_ms is None or breaker_is_open else entry.at + min(wait_ms, longest_ms) / 1000,
        spawned=worker.spawned,
        refused=worker.refused,
        ended=worker.ended,
        decided={number: each for number, each in worker.decided.items() if worker.was_lost(number)},
        excused=set(worker.ended),
        stored=worker.stored,
        failed_at=entry.at if store.failed else None,
        paused_at=entry.at if paused else None,
        memory=memory,
        store=worker.store,
        is_in_store=worker.is_in_store,
        reset_wall_ms=worker.reset_wall_ms,
    )


def follow_announcement(worker: WorkerFacts, entry: Announced) -> None:
    """An actor announced something of the worker."""
    is_fall = entry.event == "worker_stopping" and bool(worker.spec.membership)
    if entry.event == "status_changed":
        worker.was_healthy_since = worker.healthy_since if entry.old == "healthy" else None
        worker.healthy_since = entry.at if entry.new == "healthy" else None
        worker.status, worker.status_since = entry.new or "", entry.at
    elif entry.event == "worker_unkillable":
        worker.survived = entry.generation
    elif entry.event == "worker_recycled" or is_fall:
        recycled(worker, entry.at)
        worker.left |= worker.spec.temporary and entry.new == "group_restart"
        let_end(worker)


def recycled(worker: WorkerFacts, at: float) -> None:
    """It gets a new process.

    If no policy wants that, its job did not end when it was asked to; a worker without other jobs is then
    ended without being asked.
    """
    worker.recycled_at = at
    jobs = worker.spec.jobs
    if worker.spec.recycle is None and jobs is not None and jobs.queues and jobs.concurrency == 1:
        worker.urgency = max(worker.urgency, 1)


def count_raises(raises: dict[str, int], what: str) -> None:
    """An actor is made to raise, as the words of the move say: `actor_raises monitor, times 3`."""
    actor, _, times = what.removeprefix("actor_raises ").partition(", times ")
    raises[actor] = raises.get(actor, 0) + int(times or 1)


def let_end(worker: WorkerFacts) -> None:
    """From now on its end is not a death, nor is an end that is not decided on yet."""
    worker.is_ending = True
    worker.excused |= worker.ended.keys() - worker.decided.keys()


def reset(worker: WorkerFacts, entry: Ordered) -> None:
    """An operator resets or restarts it."""
    worker.reset_when_failed |= worker.failed_at is not None and entry.order == "reset"
    worker.memory.clear()
    worker.failed_at = None
    if entry.order == "restart":
        worker.stopped_at = None
        worker.left = False
        let_end(worker)
    elif worker.stopped_at is None and (worker.living is None or worker.living in worker.decided):
        worker.left = worker.resumes = True  # it does not start by itself


def follow_store(worker: WorkerFacts, entry: Stored) -> None:
    """A record of the worker is in the store."""
    match entry.kind:
        case "death" if entry.generation not in worker.stored:
            worker.stored.add(entry.generation)
            worker.store.count(entry.action or "", entry.wall_ms, entry.streak_cleared)
            worker.is_in_store |= entry.action in ("restart", "mark_failed")
            if entry.action not in ("held", "restart_uncounted") and not worker.was_lost(entry.generation):
                worker.store.deaths.append(entry.wall_ms)
            if worker.was_lost(entry.generation):
                worker.store.due = None
            if entry.action == "restart" and entry.wall_ms > worker.reset_wall_ms:
                worker.store.due = entry.wall_ms + entry.delay_ms
        case "restarts":
            worker.is_in_store = True
            worker.store.restarts += entry.restarts
            worker.store.streak += entry.streak
            worker.store.last_restart = entry.wall_ms
        case "streak":
            worker.store.streak = 0
        case "reset" if worker.is_in_store:
            # Its deaths stay in the store, and are told apart by the time of the reset.
            deaths, worker.store = worker.store.deaths, Counters()
            worker.store.deaths = deaths
            worker.reset_wall_ms = entry.wall_ms
        case _:
            pass
