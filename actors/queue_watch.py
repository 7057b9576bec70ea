"""The QueueWatch: the state of the queues, for all views.

Workers claim and finish jobs by connections of their own, so no actor is notified of each. What arrives
is that something has happened: a worker says that it holds another job, a job was requeued, a host or
an operator has put one in. Then the watch looks, once for all that has happened until then, and tells
the Broker, and the AlertDesk which queues have toxic jobs. While nothing happens nothing is looked at,
and no timer runs.

When very much happens it looks twice a second, and after a look that took long still later: it never
takes more than a twentieth of a core. No actor waits for it.

It also enforces what jobs were given: a cancelled one is asked to end, and one that does not, or takes longer
than it may, ends with its process, through the Supervisor. For that it looks once a second while a worker
holds a job.

It lives on a lane of its own, since a look blocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from loguru import logger

from .deaths.death import Job
from .errors import StoreError
from .facts.jobs import JobState, JobView, QueueStats
from .facts.queues import QueuePause
from .facts.topic_states import LONGEST_DECODED, WorkerState
from .messages import JobConvicted, JobRequeued, Published, QueueResumed, Snapshot, StateChanged
from .messages.internal.to_broker import QueuesSeen, Subscribe, Unsubscribe
from .messages.internal.to_desks import (
    LookAtLimits,
    LookAtQueues,
    QueuesTouched,
    ToxicSeen,
    WatchMessage,
    WatchQueues,
)
from .messages.internal.to_supervisor import JobOverdue
from .ports import CancelledJob, Processes, Receiver, Runtime, Store, Timer
from .rules.overdue_jobs import OverdueJobs, reason
from .rules.queue_sightings import MOST_AT_A_LOOK, Sightings
from .runtime.resilient_actor import ResilientActor, tell

PERIOD_S = 0.5
GATHER_S = 0.02
"""Changes within this time are seen together: mostly a job that is taken and done."""

LIMITS_S = 1.0
"""How often running jobs are compared with their limits."""

LONGEST_WAIT_S = 3600.0
COST_FACTOR = 20
AWAY_S = 5.0
"""How long after a look that failed there is another one."""

TOPICS = ("worker:*:status", "event:job_requeued:*", "event:job_convicted:*")


class QueueWatch(ResilientActor):
    """Looks at the queues when something has happened in them."""

    lane: ClassVar[str] = "queues"

    def __init__(
        self,
        *,
        runtime: Runtime,
        store: Store,
        persistence: Receiver,
        broker: Receiver,
        alerts: Receiver | None = None,
        processes: Processes | None = None,
        supervisor: Receiver | None = None,
    ) -> None:
        super().__init__(persistence=persistence)
        self._broker = broker
        self._runtime = runtime
        self._store = store
        self._alerts = alerts
        self._processes = processes
        self._supervisor = supervisor
        self._served = WatchQueues((), frozenset())
        self._held: dict[str, Job] = {}
        """The job that each worker last reported."""
        self._sightings = Sightings()
        self._pauses: dict[str, QueuePause] = {}
        """Those that end by themselves, by queue."""
        self._expiry: Timer | None = None
        self._timer: Timer | None = None
        self._limits = OverdueJobs()
        self._limits_timer: Timer | None = None
        self._progress: dict[int, int] = {}
        """When each running job reported its progress last."""
        self._not_before = 0.0
        self._is_away = False

    def recover(self) -> None:
        """Begin with a look at everything."""
        self._sightings, self._limits = Sightings(), OverdueJobs()
        self._timer = self._limits_timer = None
        self._look_soon()

    def handle(self, message: WatchMessage) -> None:
        """Take one message."""
        match message:
            case StateChanged(state=WorkerState() as worker):
                self._holds(worker)
            case Published(event=JobRequeued(job_id=job_id) | JobConvicted(job_id=job_id)):
                self._touched((job_id,))
            case QueuesTouched(job_ids=job_ids):
                self._touched(job_ids)
            case LookAtQueues():
                self._timer = None
                if self._served.queues:
                    self._look()
                    self._look_at_limits()
            case LookAtLimits():
                if self._served.queues:
                    self._look_at_limits()
            case WatchQueues():
                self._watch(message)
            case Snapshot(states=states):
                for each in states:
                    if isinstance(each.state, WorkerState):
                        self._holds(each.state)
            case Published() | StateChanged():
                pass
            case unknown:
                self.unexpected(unknown)

    def _watch(self, served: WatchQueues) -> None:
        before, self._served = self._served, served
        if served.queues and not before.queues:
            tell(self._broker, Subscribe(self.actor_ref, TOPICS))
        elif before.queues and not served.queues:
            tell(self._broker, Unsubscribe(self.actor_ref))
        self._look_soon()

    def _holds(self, worker: WorkerState) -> None:
        before, now = self._held.get(worker.component), worker.current_job
        if worker.component not in self._served.workers or before == now:
            return
        if now is None:
            self._held.pop(worker.component)
        else:
            self._held[worker.component] = now
        self._touched(tuple(job for job in (before, now) if isinstance(job, int)))

    def _touched(self, job_ids: tuple[int, ...]) -> None:
        self._sightings.hear(job_ids)
        self._look_soon()

    def _look_soon(self) -> None:
        if self._timer is None and self._served.queues:
            delay = max(GATHER_S, self._not_before - self._runtime.clock.monotonic())
            self._timer = self._runtime.timers.after(delay, self.actor_ref, LookAtQueues())

    def _look(self) -> None:
        began = self._runtime.clock.monotonic()
        try:
            self._tell_of_all()
        except StoreError as error:
            if not self._is_away:
                logger.warning("queues: cannot be read: {}", str(error))
            self._is_away, self._not_before = True, began + AWAY_S
            self._look_soon()
        else:
            now = self._runtime.clock.monotonic()
            self._is_away, self._not_before = False, max(began + PERIOD_S, now + COST_FACTOR * (now - began))

    # ── jobs that have to end ────────────────────────────────────────────────────────────

    def _look_at_limits(self) -> None:
        """Ask cancelled jobs to end, end those that did not, and let expire what has not begun in time."""
        if self._limits_timer is not None:
            self._limits_timer.cancel()
            self._limits_timer = None
        try:
            next_s = self._apply_limits()
        except StoreError:
            next_s = AWAY_S
        if next_s is not None:
            self._limits_timer = self._runtime.timers.after(next_s, self.actor_ref, LookAtLimits())

    def _apply_limits(self) -> float | None:
        """Returns in how many seconds to look again; None: when something has happened."""
        clock, grace_s = self._runtime.clock, self._served.grace_s
        jobs = self._store.jobs.limited()
        orders = self._limits.judge(
            jobs, clock.monotonic(), clock.wall_ms(), lambda worker: grace_s.get(worker, 0.0)
        )
        self._note_progress(jobs)
        for job in orders.ask:
            self._ask_to_end(job)
        for job in orders.end:
            overdue = JobOverdue(job.claimed_by or "", job.claimed_generation or 0, reason(job))
            tell(self._supervisor, overdue)
        # Another process may cancel a running job without notifying us.
        waits = [LIMITS_S] if self._held else []
        waits += [] if orders.next_s is None else [orders.next_s]
        return min([*waits, *self._expire()], default=None)

    def _note_progress(self, jobs: tuple[JobView, ...]) -> None:
        """Publish jobs that have moved on, with the next look."""
        before = self._progress
        self._progress = {job.id: job.progress.at_wall_ms for job in jobs if job.progress is not None}
        moved = tuple(job for job, at in self._progress.items() if before.get(job) != at)
        if moved:
            self._touched(moved)

    def _ask_to_end(self, job: JobView) -> None:
        if self._processes is not None and job.claimed_by in self._served.workers:
            cancelled = CancelledJob(job.id, job.attempts)
            self._processes.send(job.claimed_by or "", job.claimed_generation or 0, cancelled)

    def _expire(self) -> tuple[float, ...]:
        """Let expire what is due; in how many seconds the next job expires."""
        due, now = self._store.jobs.next_expiry(), self._runtime.clock.wall_ms()
        if due is None:
            return ()
        if due > now:
            return (min((due - now) / 1000, LONGEST_WAIT_S),)
        self._touched(self._store.jobs.expire(now))
        return (GATHER_S,)

    def _tell_of_all(self) -> None:
        jobs = self._store.jobs
        running = jobs.find(state=JobState.RUNNING.value, limit=MOST_AT_A_LOOK, longest=LONGEST_DECODED)
        found = jobs.named(self._sightings.to_ask_after(running), longest=LONGEST_DECODED)
        # The figures last: the states of jobs may be older than the figures, never newer.
        looked_at = self._runtime.clock.wall_ms()
        stats = jobs.stats()
        news = self._sightings.take(running, found)
        known = {each.queue for each in stats}
        empty = tuple(QueueStats(queue=queue) for queue in self._served.queues if queue not in known)
        tell(self.persistence, QueuesSeen((*stats, *empty), news.jobs, news.gone))
        self._note_pauses([each.pause for each in stats if each.pause is not None], looked_at)
        toxic = {each.queue: each.toxic for each in stats if each.queue is not None}
        tell(self._alerts, ToxicSeen(toxic, looked_at))

    def _note_pauses(self, pauses: Iterable[QueuePause], now_wall_ms: int) -> None:
        """Publish which pauses are over, and look again when the next one is."""
        before, self._pauses = self._pauses, {pause.queue: pause for pause in pauses if pause.until_wall_ms}
        for queue, pause in before.items():
            if queue not in self._pauses and (pause.until_wall_ms or 0) <= now_wall_ms:
                tell(self.persistence, QueueResumed(queue, expired=True))
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        ends = [pause.until_wall_ms for pause in self._pauses.values() if pause.until_wall_ms is not None]
        if ends:
            delay = max(0.0, (min(ends) - now_wall_ms) / 1000)
            self._expiry = self._runtime.timers.after(delay, self.actor_ref, QueuesTouched())
