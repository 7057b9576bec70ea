"""What is set for queues as a whole, and the jobs that they get by the clock, over SQLAlchemy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Unpack, cast

from sqlalchemy import Connection

from rekindle.actors.facts.jobs import NewJob
from rekindle.actors.facts.queues import (
    BatchAdded,
    BatchView,
    PeriodicPlan,
    PeriodicView,
    QueueLimits,
    QueuePause,
)
from rekindle.actors.ports import Jobs
from rekindle.actors.spec.job_payload import JobSettings, checked_queue, new_pause
from rekindle.actors.system.queues.new_batch import add_batch

from ..database.wall_clock import wall_ms
from . import periodic_rows, setting_rows
from .chains import chained_jobs
from .claim_release import notify_workers
from .new_jobs import add_jobs


class QueueSettings:
    """The part of `JobQueue` that is about whole queues."""

    def served(self) -> tuple[str, ...]:
        """The queues that the workers of the latest supervisor serve."""
        raise NotImplementedError

    def wake_workers(self, queues: Iterable[str]) -> None:
        """Wake idle workers after a commit."""
        raise NotImplementedError

    def _transaction(self) -> AbstractContextManager[Connection]:
        raise NotImplementedError

    def _reading(self) -> AbstractContextManager[Connection]:
        raise NotImplementedError

    def batch(
        self,
        queue: str,
        payloads: Iterable[object],
        *,
        then: object = None,
        then_queue: str | None = None,
        **settings: Unpack[JobSettings],
    ) -> BatchAdded:
        """Put jobs into a queue as a batch: when all of them have ended, one more job is run, once.

        Args:
            queue: the queue of the jobs.
            payloads: the payload of each.
            then: the payload of the job at the end, which finds in `job.batch` how the others ended.
            then_queue: its queue; by default the same.
            settings: of the jobs, as for `enqueue`.
        """
        return add_batch(cast("Jobs", self), self.served(), queue, payloads, then, then_queue, **settings)

    def add_batch(
        self, queue: str, jobs: Sequence[NewJob], then: NewJob | None, then_queue: str
    ) -> BatchAdded:
        """Add jobs, all or none, and one that runs once, when all of them have ended."""
        now = wall_ms()
        with self._transaction() as connection:
            number = chained_jobs.begin_batch(connection, jobs, now)
            ids = add_jobs(connection, queue, jobs, now, batch_id=number, followed=1)
            callback = None
            if then is not None:
                (callback,) = add_jobs(connection, then_queue, [then], now, state="waiting", waits_for=0)
                chained_jobs.set_callback(connection, number, callback)
        self.wake_workers([queue])
        return BatchAdded(number, ids, callback)

    def batches(self, batch: int | None = None, *, limit: int = 100) -> tuple[BatchView, ...]:
        """The batch with this number, or the latest ones, newest first."""
        with self._reading() as connection:
            return chained_jobs.batches(connection, batch, limit)

    def pause(self, queue: str, *, reason: str = "", for_s: float | None = None) -> QueuePause:
        """Start no further job of the queue, for this time or until it is resumed.

        Jobs that were started before run to their end. The pause is durable: neither a restart of the
        workers nor one of the supervisor ends it.

        Raises:
            UnknownQueueError: no worker serves the queue.
            PayloadError: the time is not valid.
            StoreUnavailableError: the database cannot be written to now.
        """
        pause = new_pause(checked_queue(queue, self.served()), wall_ms(), reason, for_s)
        with self._transaction() as connection:
            setting_rows.set_pause(connection, pause)
        return pause

    def pauses(self) -> tuple[QueuePause, ...]:
        """The queues that are paused now, by name."""
        with self._reading() as connection:
            return setting_rows.pauses(connection, wall_ms())

    def declare_periodic(self, plans: Sequence[PeriodicPlan]) -> None:
        """Have these periodic jobs and no others; a new schedule counts from now on."""
        with self._transaction() as connection:
            periodic_rows.declare(connection, plans, wall_ms())

    def periodic(self) -> tuple[PeriodicView, ...]:
        """Every periodic job, by name."""
        with self._reading() as connection:
            return periodic_rows.rows(connection)

    def advance_periodic(
        self, before: PeriodicView, after: PeriodicView, jobs: Sequence[NewJob]
    ) -> tuple[int, ...] | None:
        """Note that due times are dealt with, and add the jobs for them; None if another process did."""
        with self._transaction() as connection:
            ids = periodic_rows.advance(connection, before, after, jobs, wall_ms())
        self.wake_workers([before.queue])
        return ids

    def resume(self, queue: str) -> bool:
        """Start jobs of the queue again; False if it was not paused."""
        with self._transaction() as connection:
            was_paused = setting_rows.end_pause(connection, queue, wall_ms())
            notify_workers(connection)
        self.wake_workers([queue])
        return was_paused

    def limits(self) -> tuple[QueueLimits, ...]:
        """The queues that have limits, by name."""
        with self._reading() as connection:
            return setting_rows.limits(connection)

    def set_limits(self, limits: Iterable[QueueLimits]) -> None:
        """Have these limits of queues and no others; a supervisor does so at its start."""
        wanted = tuple(limits)
        if not wanted and not self.limits():
            return
        with self._transaction() as connection:
            if setting_rows.set_limits(connection, wanted):
                notify_workers(connection)
        self.wake_workers(self.served())
