"""Deletes finished jobs that are too old or too many, with the evidence against them.

Done and failed jobs have a retention of their own; toxic jobs, which a person should inspect, stay as long
as the history. Pending and running jobs are never deleted.
"""

from __future__ import annotations

from sqlalchemy import Connection, delete, func, or_, select

from rekindle.actors.facts.jobs import FINISHED, JobState
from rekindle.actors.spec.policies.retention_policy import Retention

from ..schema.tables import JOB, JOB_CRASH
from .job_statements import is_in

DAY_MS = 86_400_000


def prune_jobs(connection: Connection, retention: Retention, now_wall_ms: int, most: int) -> bool:
    """Delete up to `most` jobs; return whether there may be more."""
    gone = _finished(connection, retention, now_wall_ms, most)
    if not gone:
        before_ms = now_wall_ms - round(retention.history_days * DAY_MS)
        old = select(JOB.c.id).where(is_in(JobState.TOXIC), JOB.c.toxic_since_wall_ms < before_ms)
        gone = list(connection.scalars(old.order_by(JOB.c.toxic_since_wall_ms).limit(most)))
    if gone:
        connection.execute(delete(JOB_CRASH).where(JOB_CRASH.c.job_id.in_(gone)))
        connection.execute(delete(JOB).where(JOB.c.id.in_(gone)))
    return bool(gone)


def _finished(connection: Connection, retention: Retention, now_wall_ms: int, most: int) -> list[int]:
    """The finished jobs that are too old or too many; they are at the beginning of the table."""
    newest = connection.scalar(select(func.max(JOB.c.id))) or 0
    before_ms = now_wall_ms - round(retention.job_days * DAY_MS)
    oldest = (
        select(JOB.c.id, JOB.c.finished_at_wall_ms)
        .where(or_(*map(is_in, FINISHED)))
        .order_by(JOB.c.id)
        .limit(most)
    )
    return [
        number
        for number, finished_at_ms in connection.execute(oldest)
        if number <= newest - retention.job_count or (finished_at_ms or 0) < before_ms
    ]
