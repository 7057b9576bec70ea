"""Adds jobs that come after others, and batches, within a transaction of the caller.

Triggers of the database (migration 0017) release or cancel them when the jobs before them end.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, Select, bindparam, func, insert, select, update

from rekindle.actors.errors import RequestRefusedError, UnknownJobError
from rekindle.actors.facts.jobs import OPEN, JobState, NewJob
from rekindle.actors.facts.queues import BatchView

from ...schema.tables import BATCH, JOB, JOB_AFTER

_LOT = 500


def lock_predecessors(connection: Connection, after: Collection[int]) -> tuple[int, ...]:
    """Mark the jobs that another one comes after; return those that have not ended.

    Raises:
        UnknownJobError: one of them does not exist.
        RequestRefusedError: one of them has ended, and is not done.
    """
    states: dict[int, str] = {}
    ids = sorted(set(after))
    for begin in range(0, len(ids), _LOT):
        chosen = JOB.c.id.in_(ids[begin : begin + _LOT])
        # In their order, so that two callers wait for each other instead of blocking each other.
        connection.execute(select(JOB.c.id).where(chosen).order_by(JOB.c.id).with_for_update())
        marked = update(JOB).where(chosen).values(followed=1).returning(JOB.c.id, JOB.c.state)
        states |= {row.id: row.state for row in connection.execute(marked)}
    for job_id in ids:
        if job_id not in states:
            raise UnknownJobError(job_id)
        if states[job_id] not in (*OPEN, JobState.DONE):
            raise RequestRefusedError(f"job {job_id} is {states[job_id]}: no job can come after it")
    return tuple(job_id for job_id in ids if states[job_id] != JobState.DONE)


def chained_values(waits_for: Sequence[int]) -> dict[str, Any]:
    """The columns of a job that waits for others."""
    state = JobState.WAITING if waits_for else JobState.PENDING
    return {"state": state.value, "waits_for": len(waits_for)}


def link(connection: Connection, job_id: int, waits_for: Sequence[int]) -> None:
    """Store which jobs a job comes after."""
    rows = [{"after_id": before, "job_id": job_id} for before in waits_for]
    if rows:
        connection.execute(insert(JOB_AFTER), rows)


def begin_batch(connection: Connection, jobs: Sequence[NewJob], now_wall_ms: int) -> int:
    """The number of a new batch with this many jobs."""
    row = {"total": len(jobs), "done": 0, "failed": 0, "created_at_wall_ms": now_wall_ms}
    number: int = connection.execute(insert(BATCH).returning(BATCH.c.id), row).scalar_one()
    return number


def set_callback(connection: Connection, batch: int, callback: int) -> None:
    """Name the job that runs when the batch has ended."""
    connection.execute(update(BATCH).where(BATCH.c.id == batch).values(callback_id=callback))


def batches(connection: Connection, batch: int | None, limit: int) -> tuple[BatchView, ...]:
    """The batch with this number, or the latest ones."""
    chosen = select(BATCH).order_by(BATCH.c.id.desc()).limit(limit)
    if batch is not None:
        chosen = chosen.where(BATCH.c.id == batch)
    return tuple(
        BatchView(**{field: getattr(row, field) for field in BatchView.__struct_fields__})
        for row in connection.execute(chosen)
    )


_BEFORE: Select[*tuple[Any, ...]] = (
    select(JOB_AFTER.c.job_id, JOB.c.id, JOB.c.state)
    .join(JOB, JOB.c.id == JOB_AFTER.c.after_id)
    .where(JOB_AFTER.c.job_id.in_(bindparam("ids", expanding=True)))
)


def refused_by_predecessors(connection: Connection, job_ids: Collection[int]) -> str | None:
    """Why one of these jobs cannot be retried before another; None if all can."""
    for row in connection.execute(_BEFORE, {"ids": sorted(job_ids)}):
        if row.state not in (*OPEN, JobState.DONE) and row.id not in job_ids:
            return f"job {row.job_id} comes after job {row.id}, which is {row.state}: retry that one first"
    return None


def followed_and_open(connection: Connection, job_ids: Collection[int]) -> int | None:
    """A job of these that has not ended and that others wait for."""
    waited = select(func.min(JOB.c.id)).where(
        JOB.c.id.in_(job_ids), JOB.c.followed == 1, JOB.c.state.in_([state.value for state in OPEN])
    )
    found: int | None = connection.execute(waited).scalar()
    return found
