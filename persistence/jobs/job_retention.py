"""Deletes finished jobs that are too old, too many or too large, with the evidence against them.

Finished jobs have a retention of their own; toxic jobs, which a person should inspect, stay as long
as the history. Pending and running jobs are never deleted. A batch is deleted after the job at its end.
"""

from __future__ import annotations

from sqlalchemy import Connection, delete, func, or_, select

from rekindle.actors.facts.jobs import FINISHED, JobState
from rekindle.actors.spec.policies.retention_policy import Retention

from ..schema.tables import BATCH, JOB, JOB_CRASH
from .job_statements import is_in

DAY_MS = 86_400_000


def prune_jobs(connection: Connection, retention: Retention, now_wall_ms: int, most: int) -> bool:
    """Delete up to `most` jobs; return whether there may be more."""
    gone = _finished(connection, retention, now_wall_ms, most)
    if not gone:
        before_ms = now_wall_ms - round(retention.history_days * DAY_MS)
        old = select(JOB.c.id).where(is_in(JobState.TOXIC), JOB.c.toxic_since_wall_ms < before_ms)
        gone = list(connection.scalars(old.order_by(JOB.c.toxic_since_wall_ms).limit(most)))
    _delete(connection, gone)
    return bool(gone) or prune_batches(connection, retention, now_wall_ms, most)


def prune_batches(connection: Connection, retention: Retention, now_wall_ms: int, most: int) -> bool:
    """Delete up to `most` batches that ended and whose last job is deleted; whether there may be more."""
    before_ms = now_wall_ms - round(retention.job_days * DAY_MS)
    last = select(JOB.c.id).where(JOB.c.id == BATCH.c.callback_id)
    has_no_job = BATCH.c.callback_id.is_(None) & (BATCH.c.created_at_wall_ms < before_ms)
    is_over = BATCH.c.done + BATCH.c.failed >= BATCH.c.total
    old = select(BATCH.c.id).where(is_over, has_no_job | (BATCH.c.callback_id.is_not(None) & ~last.exists()))
    gone = list(connection.scalars(old.order_by(BATCH.c.id).limit(most)))
    if gone:
        connection.execute(delete(BATCH).where(BATCH.c.id.in_(gone)))
    return len(gone) == most


class JobSizes:
    """Goes through the finished jobs from the newest to the oldest, and deletes those beyond a size.

    It looks at some jobs at a time, so that no other writer waits long for a sum over all of them.
    """

    def __init__(self) -> None:
        self._below: int | None = None
        """The jobs from this number on are counted."""
        self._bytes = 0
        self._last_to_go: int | None = None
        self._is_done = False

    def step(self, connection: Connection, retention: Retention, most: int) -> bool:
        """Count or delete up to `most` jobs; return whether there may be more."""
        if retention.job_mb is None or self._is_done:
            return False
        if self._last_to_go is None:
            more = self._count(connection, retention.job_mb * 1_000_000, most)
        else:
            old = select(JOB.c.id).where(_IS_FINISHED, JOB.c.id <= self._last_to_go)
            gone = list(connection.scalars(old.order_by(JOB.c.id).limit(most)))
            _delete(connection, gone)
            more = len(gone) == most
        self._is_done = not more
        return more

    def _count(self, connection: Connection, limit: float, most: int) -> bool:
        oldest, newest = connection.execute(select(func.min(JOB.c.id), func.max(JOB.c.id))).one()
        below = (newest or 0) + 1 if self._below is None else self._below
        # By number, since there may be very many pending jobs between two finished ones.
        some = select(JOB.c.id, _SIZE).where(_IS_FINISHED, JOB.c.id < below, JOB.c.id >= below - most)
        for number, size in connection.execute(some.order_by(JOB.c.id.desc())):
            self._bytes += size
            if self._bytes > limit:
                self._last_to_go = number
                return True
        self._below = below - most
        return oldest is not None and self._below > oldest


_IS_FINISHED = or_(*map(is_in, FINISHED))
_SIZE = sum(
    (func.coalesce(func.length(column), 0) for column in (JOB.c.result, JOB.c.checkpoint, JOB.c.errors)),
    func.length(JOB.c.payload),
)


def _delete(connection: Connection, gone: list[int]) -> None:
    if gone:
        connection.execute(delete(JOB_CRASH).where(JOB_CRASH.c.job_id.in_(gone)))
        connection.execute(delete(JOB).where(JOB.c.id.in_(gone)))


def _finished(connection: Connection, retention: Retention, now_wall_ms: int, most: int) -> list[int]:
    """The finished jobs that are too old or too many; they are at the beginning of the table."""
    newest = connection.scalar(select(func.max(JOB.c.id))) or 0
    before_ms = now_wall_ms - round(retention.job_days * DAY_MS)
    oldest = select(JOB.c.id, JOB.c.finished_at_wall_ms).where(_IS_FINISHED).order_by(JOB.c.id).limit(most)
    return [
        number
        for number, finished_at_ms in connection.execute(oldest)
        if number <= newest - retention.job_count or (finished_at_ms or 0) < before_ms
    ]
