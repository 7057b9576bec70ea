"""Pure: which jobs to query, and which of them have changed since the last query.

Jobs are not published one by one: a flood of short ones would overload the subscribers. Workers and
producers report some job numbers, which are queried together from time to time. So a job that lasts
longer than the interval is always published; of shorter ones some are, and the numbers of their
queue count all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from ..facts.jobs import JobState, JobView

MOST_AT_A_LOOK = 1000
"""At most this many jobs are published per query."""


class JobNews(msgspec.Struct, frozen=True):
    """Changes since the last query."""

    jobs: tuple[JobView, ...] = ()
    gone: tuple[int, ...] = ()
    """Jobs that were running and no longer exist."""


class Sightings:
    """The jobs that were running at the last query, and those reported since."""

    def __init__(self) -> None:
        self._executed: dict[int, tuple[int, int]] = {}
        """The published attempt and the time of its progress, by job id."""
        self._heard: dict[int, None] = {}

    def hear(self, job_ids: Iterable[int]) -> None:
        """Record that these jobs may have changed."""
        for job_id in job_ids:
            if len(self._heard) >= MOST_AT_A_LOOK:
                return
            self._heard[job_id] = None

    def to_ask_after(self, running: Collection[JobView]) -> frozenset[int]:
        """The jobs to query, besides the running ones."""
        return frozenset((*self._executed, *self._heard)) - {job.id for job in running}

    def take(self, running: Collection[JobView], found: Collection[JobView]) -> JobNews:
        """Compare with the last query; `found` are the jobs that were queried."""
        seen = {job.id: job for job in (*found, *running)}
        gone = tuple(job_id for job_id in self._executed if job_id not in seen)
        news = tuple(
            job
            for job in seen.values()
            if (attempt := _attempt(job)) is None or self._executed.get(job.id) != attempt
        )
        self._executed = {job.id: attempt for job in seen.values() if (attempt := _attempt(job)) is not None}
        self._heard = {}
        return JobNews(news, gone)


def _attempt(job: JobView) -> tuple[int, int] | None:
    """The attempt that is running, and how far; None if none is, which always counts as a change."""
    if job.state != JobState.RUNNING.value:
        return None
    return job.attempts, 0 if job.progress is None else job.progress.at_wall_ms
