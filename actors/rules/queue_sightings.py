"""Pure: which jobs to ask after, and which of them have changed since the last look.

Nobody tells us of each job: a flood of short ones would drown everybody who listens. We hear some
numbers, from workers who say what they hold and from those who put jobs in, and look them up
together, now and then. So every job that is long enough to be seen is told of from its beginning to
its end; of shorter ones some are, and the figures of their queue count them all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from ..facts.jobs import JobState, JobView

MOST_AT_A_LOOK = 1000
"""More jobs than this are not told of one by one."""


class JobNews(msgspec.Struct, frozen=True):
    """What is new since the last look."""

    jobs: tuple[JobView, ...] = ()
    gone: tuple[int, ...] = ()
    """Jobs that were being executed, and are not there any more."""


class Sightings:
    """The jobs that were being executed at the last look, and those that were heard of since."""

    def __init__(self) -> None:
        self._executed: dict[int, int] = {}
        """The attempt that was told of, by the number of the job."""
        self._heard: dict[int, None] = {}

    def hear(self, job_ids: Iterable[int]) -> None:
        """Note that something may have happened to these."""
        for job_id in job_ids:
            if len(self._heard) >= MOST_AT_A_LOOK:
                return
            self._heard[job_id] = None

    def to_ask_after(self, running: Collection[JobView]) -> frozenset[int]:
        """The jobs of which the list of those being executed does not say how they are."""
        return frozenset((*self._executed, *self._heard)) - {job.id for job in running}

    def take(self, running: Collection[JobView], found: Collection[JobView]) -> JobNews:
        """Compare a look with the last one; `found` are those that were asked after."""
        seen = {job.id: job for job in (*found, *running)}
        gone = tuple(job_id for job_id in self._executed if job_id not in seen)
        news = tuple(job for job in seen.values() if self._executed.get(job.id) != _attempt(job))
        self._executed = {
            job.id: job.attempts for job in seen.values() if job.state == JobState.RUNNING.value
        }
        self._heard = {}
        return JobNews(news, gone)


def _attempt(job: JobView) -> int | None:
    """Which execution of the job is under way; -1 where none is, which is news in any case."""
    return job.attempts if job.state == JobState.RUNNING.value else -1
