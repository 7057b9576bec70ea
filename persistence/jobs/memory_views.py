"""Pure: jobs in memory, and what the end of an execution changes of them."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from rekindle.actors.facts.jobs import (
    FINISHED,
    LAST_LINES,
    JobCrash,
    JobError,
    JobState,
    JobView,
    Unique,
    Verdict,
)
from rekindle.actors.facts.records import ClaimsReleased
from rekindle.actors.spec.policies.retention_policy import Retention


def cut(job: JobView, longest: int | None) -> JobView:
    """The job with at most this many characters of payload and result."""
    if longest is not None and len(job.payload) > longest:
        job = replace(job, payload=job.payload[:longest], payload_cut=True)
    if longest is not None and job.result is not None and len(job.result) > longest:
        job = replace(job, result=job.result[:longest], result_cut=True)
    return job


def may_expire(job: JobView) -> bool:
    """Whether the job waits for its first execution, which has to begin by a certain time."""
    return job.state == JobState.PENDING and job.attempts == 0 and job.expires_at_wall_ms is not None


def has_expired(job: JobView, now_wall_ms: int) -> bool:
    """Whether that time is over."""
    return may_expire(job) and (job.expires_at_wall_ms or 0) <= now_wall_ms


def timed_out(job: JobView, end: ClaimsReleased, verdict: Verdict) -> dict[str, object]:
    """What changes of a job that took too long."""
    error = JobError(
        attempt=job.attempts,
        at_wall_ms=end.at_wall_ms,
        component_id=end.component_id,
        error=verdict.error or "",
        began_at_wall_ms=job.started_at_wall_ms,
    )
    return {
        "error_count": job.error_count + 1,
        "errors": (*job.errors, error),
        "not_before_wall_ms": end.at_wall_ms + round(verdict.retry_in_s * 1000),
    }


def crash_of(job: JobView, end: ClaimsReleased) -> JobCrash:
    """The evidence of one end of a worker against a job."""
    return JobCrash(
        job_id=job.id,
        attempt=job.attempts,
        at_wall_ms=end.at_wall_ms,
        component_id=end.component_id,
        generation=end.generation,
        cause=end.cause,
        exit_code=end.exit_code,
        signal=end.signal,
        output=end.output[-LAST_LINES:],
        began_at_wall_ms=job.started_at_wall_ms,
    )


def same_job(jobs: Iterable[JobView], queue: str, unique: Unique, now_wall_ms: int) -> int | None:
    """The latest job that stands in the way of a unique one."""
    same = (
        each.id
        for each in jobs
        if (each.queue, each.unique_key) == (queue, unique.key)
        and each.created_at_wall_ms > now_wall_ms - unique.for_s * 1000
        and each.state in unique.states
    )
    return max(same, default=None)


def outdated(jobs: Iterable[JobView], retention: Retention, now_wall_ms: int) -> list[int]:
    """The finished jobs that are too old or too many."""
    jobs = tuple(jobs)
    newest = max((job.id for job in jobs), default=0)
    before = now_wall_ms - round(retention.job_days * 86_400_000)
    toxic_before = now_wall_ms - round(retention.history_days * 86_400_000)
    too_large = _beyond_size(jobs, retention.job_mb)
    return [
        job.id
        for job in jobs
        if (
            job.state in FINISHED
            and (
                job.id <= max(newest - retention.job_count, too_large)
                or (job.finished_at_wall_ms or 0) < before
            )
        )
        or (job.state == JobState.TOXIC and (job.toxic_since_wall_ms or 0) < toxic_before)
    ]


def _beyond_size(jobs: tuple[JobView, ...], most_mb: float | None) -> int:
    """The newest finished job with which the finished jobs are too large; 0 if they are not."""
    size = 0
    for job in sorted(jobs, key=lambda job: -job.id):
        if most_mb is None or job.state not in FINISHED:
            continue
        size += len(job.payload) + len(job.result or "") + len(job.checkpoint or "")
        if size > most_mb * 1_000_000:
            return job.id
    return 0
