"""The queues as a host and its operators get them.

The QueueWatch is notified of what they change, and results are Python values that a program can wait for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

from ...errors import JobFailedError, RequestTimeoutError
from ...facts.jobs import OPEN, JobCrash, JobState, JobView, NewJob, QueueStats
from ...facts.queues import BatchAdded, BatchView, PeriodicPlan, PeriodicView, QueueLimits, QueuePause
from ...messages import QueueEvent, QueuePaused, QueueResumed
from ...ports import Jobs

FIRST_PAUSE_S = 0.005
LONGEST_PAUSE_S = 0.25


class JobResults:
    """The part of every implementation of `Jobs` that waits for results."""

    def get(self, job_id: int) -> JobView:
        """One job, or `UnknownJobError`."""
        raise NotImplementedError

    def result(self, job_id: int, *, timeout_s: float = 0.0) -> Any:
        """What a job returned, decoded from JSON; waits up to this time for the end of the job.

        Raises:
            JobFailedError: it ended without a result: it failed, is toxic or expired, or was cancelled.
            RequestTimeoutError: it has not ended within this time.
            UnknownJobError: no job has that number.
        """
        deadline, pause_s = time.monotonic() + timeout_s, FIRST_PAUSE_S
        while (job := self.get(job_id)).state in OPEN:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise RequestTimeoutError(f"job {job_id} is {job.state}: it has no result yet")
            time.sleep(min(pause_s, left_s))
            pause_s = min(pause_s * 1.5, LONGEST_PAUSE_S)
        if job.state != JobState.DONE:
            raise JobFailedError(job_id, job.state, job.error)
        return job.result_value


class WatchedJobs(JobResults):
    """The `Jobs` of a store; `touched` is called after every change, with the ids of the jobs.

    `announce` publishes what happens to a whole queue.
    """

    def __init__(
        self, jobs: Jobs, touched: Callable[[tuple[int, ...]], None], announce: Callable[[QueueEvent], None]
    ) -> None:
        self._jobs = jobs
        self._touched = touched
        self._announce = announce

    def add(self, queue: str, jobs: Sequence[NewJob]) -> tuple[int, ...]:
        """Put them into the queue, all or none; their numbers."""
        ids = self._jobs.add(queue, jobs)
        self._touched(ids)
        return ids

    def get(self, job_id: int) -> JobView:
        """One job, or `UnknownJobError`."""
        return self._jobs.get(job_id)

    def find(
        self,
        *,
        queue: str | None = None,
        state: str | None = None,
        limit: int = 100,
        longest: int | None = None,
    ) -> tuple[JobView, ...]:
        """Jobs, the newest first; those of one queue or in one state only."""
        return self._jobs.find(queue=queue, state=state, limit=limit, longest=longest)

    def taken_by(
        self, component_id: str, *, since_wall_ms: int = 0, limit: int = 100, longest: int | None = None
    ) -> tuple[JobView, ...]:
        """The jobs that a worker was the last to take, the latest first, as far back as is quickly found."""
        return self._jobs.taken_by(component_id, since_wall_ms=since_wall_ms, limit=limit, longest=longest)

    def named(self, job_ids: Collection[int], *, longest: int | None = None) -> tuple[JobView, ...]:
        """Those of these jobs that there are, by number."""
        return self._jobs.named(job_ids, longest=longest)

    def traced(self, after: tuple[int, int], *, limit: int) -> tuple[JobView, ...]:
        """The jobs of traces that ended after this wall time and number, in that order; payloads are cut."""
        return self._jobs.traced(after, limit=limit)

    def crashes(self, job_ids: Sequence[int]) -> tuple[JobCrash, ...]:
        """The evidence against jobs, oldest first."""
        return self._jobs.crashes(job_ids)

    def stats(self) -> tuple[QueueStats, ...]:
        """The figures of every queue that has jobs, by name."""
        return self._jobs.stats()

    def retry(self, job_ids: Sequence[int]) -> None:
        """Put toxic or failed jobs back with their counts cleared, all or none."""
        self._jobs.retry(job_ids)
        self._touched(tuple(job_ids))

    def cancel(self, job_ids: Sequence[int]) -> tuple[JobState, ...]:
        """Cancel pending jobs, and ask running ones to end, all or none; the state of each from now on."""
        states = self._jobs.cancel(job_ids)
        self._touched(tuple(job_ids))
        return states

    def limited(self) -> tuple[JobView, ...]:
        """The running jobs that are cancelled, have a time limit, or show their progress."""
        return self._jobs.limited()

    def next_expiry(self) -> int | None:
        """When the next pending job expires, or should have."""
        return self._jobs.next_expiry()

    def expire(self, now_wall_ms: int) -> tuple[int, ...]:
        """Let some of the jobs expire that have not begun in time; their numbers."""
        ids = self._jobs.expire(now_wall_ms)
        self._touched(ids)
        return ids

    def drop(self, job_ids: Sequence[int]) -> None:
        """Forget jobs that are not running, and the evidence with them, all or none."""
        self._jobs.drop(job_ids)
        self._touched(tuple(job_ids))

    def prune(self, *, finished_before_wall_ms: int) -> int:
        """Forget the jobs that were done before; how many they were."""
        many = self._jobs.prune(finished_before_wall_ms=finished_before_wall_ms)
        self._touched(())
        return many

    def add_batch(
        self, queue: str, jobs: Sequence[NewJob], then: NewJob | None, then_queue: str
    ) -> BatchAdded:
        """Add jobs, all or none, and one that runs once, when all of them have ended."""
        added = self._jobs.add_batch(queue, jobs, then, then_queue)
        self._touched(added.job_ids)
        return added

    def batches(self, batch: int | None = None, *, limit: int = 100) -> tuple[BatchView, ...]:
        """The batch with this number, or the latest ones, newest first."""
        return self._jobs.batches(batch, limit=limit)

    def pause(self, queue: str, *, reason: str = "", for_s: float | None = None) -> QueuePause:
        """Start no further job of the queue, for this time or until it is resumed."""
        pause = self._jobs.pause(queue, reason=reason, for_s=for_s)
        self._announce(QueuePaused(queue, reason, for_s))
        self._touched(())
        return pause

    def pauses(self) -> tuple[QueuePause, ...]:
        """The queues that are paused now, by name."""
        return self._jobs.pauses()

    def limits(self) -> tuple[QueueLimits, ...]:
        """The queues that have limits, by name."""
        return self._jobs.limits()

    def set_limits(self, limits: Sequence[QueueLimits]) -> None:
        """Have these limits of queues and no others."""
        self._jobs.set_limits(limits)

    def declare_periodic(self, plans: Sequence[PeriodicPlan]) -> None:
        """Have these periodic jobs and no others."""
        self._jobs.declare_periodic(plans)

    def periodic(self) -> tuple[PeriodicView, ...]:
        """Every periodic job, by name."""
        return self._jobs.periodic()

    def advance_periodic(
        self, before: PeriodicView, after: PeriodicView, jobs: Sequence[NewJob]
    ) -> tuple[int, ...] | None:
        """Note that due times are dealt with, and add the jobs for them."""
        return self._jobs.advance_periodic(before, after, jobs)

    def resume(self, queue: str) -> bool:
        """Start jobs of the queue again; False if it was not paused."""
        was_paused = self._jobs.resume(queue)
        if was_paused:
            self._announce(QueueResumed(queue))
        self._touched(())
        return was_paused
