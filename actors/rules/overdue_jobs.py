"""Pure: which running jobs have to end, because they were cancelled or take too long.

A cancelled job is asked to end, over the channel of its worker; one that takes too long is asked by its own
worker. A job that has not ended after a grace period is ended with its process. Times are monotonic from the
moment at which a job was seen first: a clock that is set meanwhile ends no job early.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from ..facts.jobs import JobView


class JobOrders(msgspec.Struct, frozen=True):
    """What to do about running jobs now, and when to look again at the latest."""

    ask: tuple[JobView, ...] = ()
    end: tuple[JobView, ...] = ()
    next_s: float | None = None
    """In how many seconds the next job has to be ended; None: not known of any."""


class OverdueJobs:
    """Until when the jobs that have to end may run, by number and attempt."""

    def __init__(self) -> None:
        self._cancelled: dict[tuple[int, int], float] = {}
        self._limited: dict[tuple[int, int], float] = {}

    def judge(
        self,
        jobs: Iterable[JobView],
        now: float,
        now_wall_ms: int,
        grace_s: Callable[[str], float],
    ) -> JobOrders:
        """Compare the running jobs with their limits; `grace_s` is that of a worker."""
        running = tuple(jobs)
        cancelled = [job for job in running if job.cancel_requested_at_wall_ms is not None]
        limited = [job for job in running if job.timeout_ms is not None]
        until = {_key(job): now + grace_s(job.claimed_by or "") for job in running}
        self._cancelled = {key: self._cancelled.get(key, until[key]) for key in map(_key, cancelled)}
        self._limited = {
            _key(job): self._limited.get(_key(job), until[_key(job)] + _left_s(job, now_wall_ms))
            for job in limited
        }
        ends = self._limited | self._cancelled
        ends |= {key: min(ends[key], at) for key, at in self._limited.items()}
        due = tuple(job for job in running if ends.get(_key(job), float("inf")) <= now)
        waits = [at - now for at in ends.values() if at > now]
        return JobOrders(tuple(cancelled), due, min(waits, default=None))


def _key(job: JobView) -> tuple[int, int]:
    return job.id, job.attempts


def _left_s(job: JobView, now_wall_ms: int) -> float:
    """How long a job may run on; never longer than its whole limit, whatever the clock says."""
    assert job.timeout_ms is not None
    since_ms = now_wall_ms - (job.started_at_wall_ms or now_wall_ms)
    return min(max(0, job.timeout_ms - since_ms), job.timeout_ms) / 1000


def reason(job: JobView) -> str:
    """Why a worker gets a new process for a job."""
    if job.cancel_requested_at_wall_ms is not None:
        return f"job {job.id} was cancelled and did not end"
    return f"job {job.id} timed out after {(job.timeout_ms or 0) / 1000:g} s and did not end"
