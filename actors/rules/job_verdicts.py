"""Pure: what becomes of a job for which its worker was ended, because it was cancelled or took too long.

Neither is a crash of the worker, and no other job of that worker is to blame.
"""

from __future__ import annotations

from typing import Protocol

from ..facts.jobs import ErrorRetries, JobState, Verdict, sound_count


class HeldJob(Protocol):
    """What a verdict needs to know of a job: a row, or a view."""

    @property
    def max_retries(self) -> int | None: ...
    @property
    def error_count(self) -> int: ...
    @property
    def started_at_wall_ms(self) -> int | None: ...
    @property
    def timeout_ms(self) -> int | None: ...
    @property
    def retry_delay_ms(self) -> int | None: ...
    @property
    def max_retry_delay_ms(self) -> int | None: ...
    @property
    def cancel_requested_at_wall_ms(self) -> int | None: ...


class WorkerEnd(Protocol):
    """What a verdict needs to know of the end of a worker."""

    @property
    def counted(self) -> bool: ...
    @property
    def error_retries(self) -> ErrorRetries: ...
    @property
    def at_wall_ms(self) -> int: ...
    @property
    def is_late(self) -> bool: ...


def verdict_after_crash(crash_count: int, *, counted: bool, retries: int | None, alone: bool) -> Verdict:
    """The verdict on a job whose worker ended while executing it.

    Args:
        crash_count: the crashes that counted against it before.
        counted: whether this end was a crash, not a stop on request.
        retries: how often a job is requeued after a crash; None: always.
        alone: it was suspected and ran alone, so no other job was the cause of this crash.
    """
    if not counted:
        return Verdict(JobState.PENDING, crash_count)
    crashes = crash_count + 1
    if retries is None or crashes <= retries:
        return Verdict(JobState.PENDING, crashes)
    many = f"failed after {crashes} worker crash{'' if crashes == 1 else 'es'}"
    return Verdict(JobState.TOXIC, crashes, f"{many}, the last one while it ran alone" if alone else many)


def verdict_if_ended_for_it(job: HeldJob, end: WorkerEnd, crash_count: int) -> Verdict | None:
    """The verdict on a job for which its worker was ended: it was cancelled, or took too long.

    None: it has to do with the job only as a suspect; see `verdict_after_crash`.
    """
    if job.cancel_requested_at_wall_ms is not None:
        return Verdict(JobState.CANCELLED, crash_count)
    if end.counted or end.is_late or not _is_overdue(job, end.at_wall_ms):
        return None
    return _timed_out(job, end.error_retries, crash_count)


def _is_overdue(job: HeldJob, now_wall_ms: int) -> bool:
    if job.timeout_ms is None or job.started_at_wall_ms is None:
        return False
    return job.started_at_wall_ms + job.timeout_ms <= now_wall_ms


def _timed_out(job: HeldJob, policy: ErrorRetries, crash_count: int) -> Verdict:
    error = f"timed out after {(job.timeout_ms or 0) / 1000:g} s; its process was ended"
    failures = (sound_count(job.error_count) or 0) + 1
    if failures > (policy.retries if job.max_retries is None else job.max_retries):
        return Verdict(JobState.ERROR, crash_count, error, timed_out=True)
    first_s = policy.delay_s if job.retry_delay_ms is None else job.retry_delay_ms / 1000
    longest_s = policy.max_delay_s if job.max_retry_delay_ms is None else job.max_retry_delay_ms / 1000
    # As a worker does (`rekindle.worker.jobs.job_settings`): a float overflows near 2 ** 1024.
    delay_s = min(first_s * 2 ** min(failures - 1, 32), longest_s)
    return Verdict(JobState.PENDING, crash_count, error, timed_out=True, retry_in_s=delay_s)
