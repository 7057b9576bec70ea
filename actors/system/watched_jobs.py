"""The queues as a host and its operators get them: the QueueWatch is notified of what they change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ..facts.jobs import JobCrash, JobView, NewJob, QueueStats
from ..ports import Jobs


class WatchedJobs:
    """The `Jobs` of a store; `touched` is called after every change, with the ids of the jobs."""

    def __init__(self, jobs: Jobs, touched: Callable[[tuple[int, ...]], None]) -> None:
        self._jobs = jobs
        self._touched = touched

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

    def drop(self, job_ids: Sequence[int]) -> None:
        """Forget jobs that are not running, and the evidence with them, all or none."""
        self._jobs.drop(job_ids)
        self._touched(tuple(job_ids))

    def prune(self, *, finished_before_wall_ms: int) -> int:
        """Forget the jobs that were done before; how many they were."""
        many = self._jobs.prune(finished_before_wall_ms=finished_before_wall_ms)
        self._touched(())
        return many
