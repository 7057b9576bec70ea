"""The queues, as hosts, operators and the actors need them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

from ..facts.jobs import JobCrash, JobState, JobView, NewJob, QueueStats
from ..facts.queues import BatchAdded, BatchView, PeriodicPlan, PeriodicView, QueueLimits, QueuePause


class Jobs(Protocol):
    """The queues, for producers and operators.

    Every method may be called from any thread, is one transaction, and raises `StoreError` if the
    database is not available. Workers claim and finish jobs over their own connections
    (`rekindle.worker.jobs`).
    """

    def add(self, queue: str, jobs: Sequence[NewJob]) -> tuple[int, ...]:
        """Add the jobs to the queue, all or none; their numbers."""
        ...

    def get(self, job_id: int) -> JobView:
        """One job, or `UnknownJobError`."""
        ...

    def result(self, job_id: int, *, timeout_s: float = 0.0) -> Any:
        """What a job returned, as a Python value; waits up to this time for the end of the job.

        Raises:
            JobFailedError: it ended without a result: it failed, is toxic or expired, or was cancelled.
            RequestTimeoutError: it has not ended within this time.
            UnknownJobError: no job has that number.
        """
        ...

    def find(
        self,
        *,
        queue: str | None = None,
        state: str | None = None,
        limit: int = 100,
        longest: int | None = None,
    ) -> tuple[JobView, ...]:
        """Jobs, newest first; optionally only those of one queue or in one state.

        With `longest`, here and below, at most this many characters of payload and result are read.
        """
        ...

    def taken_by(
        self, component_id: str, *, since_wall_ms: int = 0, limit: int = 100, longest: int | None = None
    ) -> tuple[JobView, ...]:
        """The jobs that this worker was the last to take, latest first, as far back as is quickly found."""
        ...

    def named(self, job_ids: Collection[int], *, longest: int | None = None) -> tuple[JobView, ...]:
        """The existing ones of these jobs, by number."""
        ...

    def traced(self, after: tuple[int, int], *, limit: int) -> tuple[JobView, ...]:
        """The jobs of traces that ended after this wall time and number, in that order; payloads are cut."""
        ...

    def crashes(self, job_ids: Sequence[int]) -> tuple[JobCrash, ...]:
        """The evidence against jobs, oldest first."""
        ...

    def stats(self) -> tuple[QueueStats, ...]:
        """The figures of every queue that has jobs, by name."""
        ...

    def retry(self, job_ids: Sequence[int]) -> None:
        """Put toxic, failed, cancelled or expired jobs back with cleared counts, all or none.

        Raises:
            UnknownJobError: one of them does not exist.
            RequestRefusedError: one of them is in another state.
        """
        ...

    def cancel(self, job_ids: Sequence[int]) -> tuple[JobState, ...]:
        """Cancel pending jobs, and ask running ones to end, all or none; the state of each from now on.

        Raises:
            UnknownJobError: one of them does not exist.
            RequestRefusedError: one of them has ended already.
        """
        ...

    def limited(self) -> tuple[JobView, ...]:
        """The running jobs that are cancelled, limited in time, or show progress; without their payload."""
        ...

    def next_expiry(self) -> int | None:
        """When the next pending job expires, or should have."""
        ...

    def expire(self, now_wall_ms: int) -> tuple[int, ...]:
        """Let some of the jobs expire that have not begun in time; their numbers."""
        ...

    def drop(self, job_ids: Sequence[int]) -> None:
        """Delete jobs that are not running, with their evidence, all or none.

        Raises:
            UnknownJobError: one of them does not exist.
            RequestRefusedError: one of them is running.
        """
        ...

    def prune(self, *, finished_before_wall_ms: int) -> int:
        """Delete the jobs that were done before this time; how many."""
        ...

    def add_batch(
        self, queue: str, jobs: Sequence[NewJob], then: NewJob | None, then_queue: str
    ) -> BatchAdded:
        """Add jobs, all or none, and one that runs once, when all of them have ended."""
        ...

    def batches(self, batch: int | None = None, *, limit: int = 100) -> tuple[BatchView, ...]:
        """The batch with this number, or the latest ones, newest first."""
        ...

    def pause(self, queue: str, *, reason: str = "", for_s: float | None = None) -> QueuePause:
        """Start no further job of the queue, for this time or until it is resumed."""
        ...

    def pauses(self) -> tuple[QueuePause, ...]:
        """The queues that are paused now, by name."""
        ...

    def limits(self) -> tuple[QueueLimits, ...]:
        """The queues that have limits, by name."""
        ...

    def set_limits(self, limits: Sequence[QueueLimits]) -> None:
        """Have these limits of queues and no others."""
        ...

    def declare_periodic(self, plans: Sequence[PeriodicPlan]) -> None:
        """Have these periodic jobs and no others; a new schedule counts from now on."""
        ...

    def periodic(self) -> tuple[PeriodicView, ...]:
        """Every periodic job, by name."""
        ...

    def advance_periodic(
        self, before: PeriodicView, after: PeriodicView, jobs: Sequence[NewJob]
    ) -> tuple[int, ...] | None:
        """Note that due times are dealt with, and add the jobs for them; None if another process did."""
        ...

    def resume(self, queue: str) -> bool:
        """Start jobs of the queue again; False if it was not paused."""
        ...
