"""The QueueWatch: the state of the queues, for all views.

Workers claim and finish jobs by connections of their own, so no actor is notified of each. What arrives
is that something has happened: a worker says that it holds another job, a job was requeued, a host or
an operator has put one in. Then the watch looks, once for all that has happened until then, and tells
the Broker, and the AlertDesk which queues have toxic jobs. While nothing happens nothing is looked at,
and no timer runs.

When very much happens it looks twice a second, and after a look that took long still later: it never
takes more than a twentieth of a core. It decides nothing, and no actor waits for it.

It lives on a lane of its own, since a look blocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from loguru import logger

from .deaths.death import Job
from .errors import StoreError
from .facts.jobs import JobState, QueueStats
from .facts.queues import QueuePause
from .facts.topic_states import LONGEST_DECODED, WorkerState
from .messages import JobConvicted, JobRequeued, Published, QueueResumed, Snapshot, StateChanged
from .messages.internal.to_broker import QueuesSeen, Subscribe, Unsubscribe
from .messages.internal.to_desks import LookAtQueues, QueuesTouched, ToxicSeen, WatchMessage, WatchQueues
from .ports import Receiver, Runtime, Store, Timer
from .rules.queue_sightings import MOST_AT_A_LOOK, Sightings
from .runtime.resilient_actor import ResilientActor, tell

PERIOD_S = 0.5
GATHER_S = 0.02
"""Changes within this time are seen together: mostly a job that is taken and done."""

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
    ) -> None:
        super().__init__(persistence=persistence)
        self._broker = broker
        self._runtime = runtime
        self._store = store
        self._alerts = alerts
        self._served = WatchQueues((), frozenset())
        self._held: dict[str, Job] = {}
        """The job that each worker last reported."""
        self._sightings = Sightings()
        self._pauses: dict[str, QueuePause] = {}
        """Those that end by themselves, by queue."""
        self._expiry: Timer | None = None
        self._timer: Timer | None = None
        self._not_before = 0.0
        self._is_away = False

    def recover(self) -> None:
        """Begin with a look at everything."""
        self._sightings = Sightings()
        self._timer = None
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
