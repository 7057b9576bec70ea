"""The PeriodicDesk: puts periodic jobs into their queues when they are due, and stores limits of queues.

Which due times are dealt with is in the store and moves in the transaction that adds the job. So a job is
enqueued once for each due time, whenever this process is killed, and also if another one does the same.

It lives on the lane of the QueueWatch, since both wait for the store.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import ClassVar

from loguru import logger
from msgspec.structs import replace

from .errors import StoreError
from .facts.jobs import NewJob, Unique
from .facts.queues import PeriodicPlan, PeriodicView, QueueLimits
from .messages import PeriodicEnqueued, PeriodicMissed
from .messages.internal.to_desks import DeclarePeriodic, PeriodicDue, PeriodicMessage, QueuesTouched
from .ports import Receiver, Runtime, Store, Timer
from .rules.schedules.periodic_dues import PeriodicStep, step_of
from .runtime.resilient_actor import ResilientActor, tell
from .spec.job_payload import payload_text
from .spec.policies.queues.periodic import Periodic

DAY_S = 86_400.0
AWAY_S = 5.0
"""How long after a try that failed there is another one."""

LONGEST_S = 60.0
"""How long it sleeps at most: the clock may be set, or the machine suspended."""


class PeriodicDesk(ResilientActor):
    """Knows when the next periodic job is due."""

    lane: ClassVar[str] = "queues"

    def __init__(self, *, runtime: Runtime, store: Store, persistence: Receiver, watch: Receiver) -> None:
        super().__init__(persistence=persistence)
        self._runtime = runtime
        self._store = store
        self._watch = watch
        self._jobs: dict[str, Periodic] = {}
        self._limits: tuple[QueueLimits, ...] = ()
        self._is_declared = True
        self._is_away = False
        self._timer: Timer | None = None

    def recover(self) -> None:
        """Look at everything again."""
        self._arm(0.0)

    def handle(self, message: PeriodicMessage) -> None:
        """Take one message."""
        match message:
            case DeclarePeriodic(jobs=jobs, limits=limits):
                self._jobs = {job.name: job for job in jobs}
                self._limits = limits
                self._is_declared = False
                self._arm(0.0)
            case PeriodicDue():
                self._timer = None
                self._look()
            case unknown:
                self.unexpected(unknown)

    def _arm(self, delay_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._runtime.timers.after(delay_s, self.actor_ref, PeriodicDue())

    def _look(self) -> None:
        try:
            self._declare()
            known = self._store.jobs.periodic() if self._jobs else ()
            for view in known:
                if view.name in self._jobs:
                    self._deal_with(self._jobs[view.name], view)
        except StoreError as error:
            if not self._is_away:
                logger.warning("periodic jobs: the store is not available: {}", str(error))
            self._is_away = True
            self._arm(AWAY_S)
            return
        self._is_away = False
        if self._jobs:
            self._arm(min(LONGEST_S, self._next_in_s(known)))

    def _declare(self) -> None:
        if self._is_declared:
            return
        self._store.jobs.set_limits(self._limits)
        if not self._jobs and not self._store.jobs.periodic():
            self._is_declared = True
            return
        now_ms = self._runtime.clock.wall_ms()
        plans = [
            PeriodicPlan(
                name=job.name,
                queue=job.queue,
                schedule=str(job.calendar),
                next_due_wall_ms=job.calendar.next_after(now_ms),
            )
            for job in self._jobs.values()
        ]
        self._store.jobs.declare_periodic(plans)
        self._is_declared = True

    def _deal_with(self, job: Periodic, view: PeriodicView) -> None:
        step = step_of(job, view.last_due_wall_ms, self._runtime.clock.wall_ms())
        if step is None:
            return
        after = replace(
            view,
            last_due_wall_ms=step.until_ms,
            next_due_wall_ms=step.next_ms,
            missed=view.missed + step.missed,
        )
        jobs = [_new_job(job, step.until_ms)] if step.enqueues else []
        ids = self._store.jobs.advance_periodic(view, after, jobs)
        if ids is not None:
            self._tell_of(job, step, ids)

    def _tell_of(self, job: Periodic, step: PeriodicStep, ids: tuple[int, ...]) -> None:
        for job_id in ids:
            event = PeriodicEnqueued(job.name, job.queue, job_id, step.until_ms, step.missed)
            tell(self.persistence, event)
            tell(self._watch, QueuesTouched(ids))
        if step.missed and not ids:
            tell(self.persistence, PeriodicMissed(job.name, job.queue, step.missed, step.until_ms))

    def _next_in_s(self, known: tuple[PeriodicView, ...]) -> float:
        now_ms = self._runtime.clock.wall_ms()
        dues = [
            self._jobs[view.name].calendar.next_after(max(now_ms, view.last_due_wall_ms))
            for view in known
            if view.name in self._jobs
        ]
        return max(0.0, (min(dues, default=now_ms + LONGEST_S * 1000) - now_ms) / 1000)


def _new_job(job: Periodic, due_ms: int) -> NewJob:
    """The job for a due time; the key names both, for people and as a second safeguard."""
    due = datetime.fromtimestamp(due_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return NewJob(payload=payload_text(job.payload), unique=Unique(f"periodic:{job.name}:{due}", DAY_S))
