"""Pure: what becomes of a job for which its worker was ended, because it was cancelled or took too long.

Neither is a crash of the worker, and no other job of that worker is to blame.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from .jobs import JobState, Verdict, sound_count


class ErrorRetries(msgspec.Struct, frozen=True):
    """How often a worker's jobs are retried after an error, and after which delays."""

    retries: int = 0
    delay_s: float = 5.0
    max_delay_s: float = 300.0


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


class End(Protocol):
    """What a verdict needs to know of the end of a worker."""

    @property
    def counted(self) -> bool: ...
    @property
    def error_retries(self) -> ErrorRetries: ...
    @property
    def at_wall_ms(self) -> int: ...
    @property
    def is_late(self) -> bool: ...


def own_end(job: HeldJob, end: End, crash_count: int) -> Verdict | None:
    """The verdict on a job for which its worker was ended: it was cancelled, or took too long.

    None: it has to do with the job only as a suspect; see `judged`.
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
