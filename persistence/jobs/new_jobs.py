"""Adds jobs to a queue, within a transaction of the caller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, text

from rekindle.actors.facts.jobs import JobState, NewJob, Unique

from ..sql.encoding import storable
from . import job_statements as sql
from .chains.chained_jobs import chained_values, link, lock_predecessors
from .claim_release import notify_workers

LOT = 500
"""How many keys are looked for at a time."""

# Two transactions that add the same unique job at the same time would not see each other's. One that adds
# many takes one lock for the queue instead of as many as the server may not have room for.
_ONE_AT_A_TIME = text(
    "SELECT pg_advisory_xact_lock_shared(hashtextextended('rekindle_queue ' || :queue, 0)),"
    " pg_advisory_xact_lock(hashtextextended('rekindle_job ' || :queue || :key, 0))"
)
_ALL_AT_A_TIME = text("SELECT pg_advisory_xact_lock(hashtextextended('rekindle_queue ' || :queue, 0))")


def add_jobs(
    connection: Connection, queue: str, jobs: Sequence[NewJob], now_wall_ms: int, **more: Any
) -> tuple[int, ...]:
    """Insert the jobs; return their numbers, or those of the jobs that stand in the way of unique ones."""
    if (unique := _alike(jobs)) is not None:
        ids = _add_unique(connection, queue, jobs, unique, now_wall_ms, more)
    elif any(job.unique or job.after for job in jobs):
        ids = tuple(_add_one(connection, queue, job, now_wall_ms, more) for job in jobs)
    else:
        rows = [{**new_row(queue, job, now_wall_ms), **more} for job in jobs]
        ids = _add_at_once(connection, rows)
    notify_workers(connection)
    return ids


def _add_at_once(connection: Connection, rows: Sequence[dict[str, Any]]) -> tuple[int, ...]:
    """Insert the rows in their order; their numbers."""
    if connection.dialect.name != "postgresql" or len(rows) == 1:
        return tuple(connection.execute(sql.ENQUEUE, rows).scalars().all())
    # As one array for each column: with a parameter for each value, psycopg spends most of the time on them.
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    found = connection.execute(sql.enqueue_arrays(tuple(columns), connection.dialect), columns)
    return tuple(sorted(found.scalars()))  # numbered in their order


def _alike(jobs: Sequence[NewJob]) -> Unique | None:
    """What makes these jobs unique, but their keys, if there are several and it is the same for all."""
    unique = jobs[0].unique
    if len(jobs) == 1 or unique is None or JobState.PENDING not in unique.states:
        return None
    kind = (unique.for_s, unique.states)
    are_alike = all(job.unique and (job.unique.for_s, job.unique.states) == kind for job in jobs)
    return unique if are_alike and not any(job.after for job in jobs) else None


def _add_unique(
    connection: Connection,
    queue: str,
    jobs: Sequence[NewJob],
    unique: Unique,
    now_wall_ms: int,
    more: dict[str, Any],
) -> tuple[int, ...]:
    """Add the unique jobs that are not there yet; the number of each, or of the one that is there."""
    if connection.dialect.name == "postgresql":
        connection.execute(_ALL_AT_A_TIME, {"queue": queue})
    keys = [storable(job.unique.key or "") for job in jobs if job.unique]
    values = {
        "of_queue": queue,
        "since": now_wall_ms - round(unique.for_s * 1000),
        "states": list(unique.states),
    }
    known: dict[str, int] = {}
    for begin in range(0, len(keys), LOT):
        found = connection.execute(sql.SAME_OF_MANY, {**values, "keys": keys[begin : begin + LOT]})
        known.update((row.unique_key, row.id) for row in found)
    new: dict[str, NewJob] = {}
    for key, job in zip(keys, jobs, strict=True):
        if key not in known:
            new.setdefault(key, job)
    if new:
        rows = [{**new_row(queue, job, now_wall_ms), **more} for job in new.values()]
        known.update(zip(new, _add_at_once(connection, rows), strict=True))
    return tuple(known[key] for key in keys)


def _add_one(connection: Connection, queue: str, job: NewJob, now_wall_ms: int, more: dict[str, Any]) -> int:
    same = None if job.unique is None else _same(connection, queue, job.unique, now_wall_ms)
    if same is not None:
        return same
    waits_for = lock_predecessors(connection, job.after) if job.after else ()
    chained = chained_values(waits_for) if job.after else {}
    row = {**new_row(queue, job, now_wall_ms), **chained, **more}
    added: int = connection.execute(sql.ENQUEUE, [row]).scalar_one()
    link(connection, added, waits_for)
    return added


def _same(connection: Connection, queue: str, unique: Unique, now_wall_ms: int) -> int | None:
    key = storable(unique.key or "")
    if connection.dialect.name == "postgresql":
        connection.execute(_ONE_AT_A_TIME, {"queue": queue, "key": key})
    values = {
        "of_queue": queue,
        "key": key,
        "since": now_wall_ms - round(unique.for_s * 1000),
        "states": list(unique.states),
    }
    found: int | None = connection.execute(sql.SAME, values).scalar()
    return found


def new_row(queue: str, job: NewJob, now_wall_ms: int) -> dict[str, Any]:
    """The row of a new job."""
    return {
        "queue": queue,
        "payload": storable(job.payload),
        "priority": job.priority,
        "not_before_wall_ms": now_wall_ms if job.not_before_wall_ms is None else job.not_before_wall_ms,
        "state": JobState.PENDING.value,
        "attempts": 0,
        "crash_count": 0,
        "error_count": 0,
        "max_retries": job.max_retries,
        "crash_retries": job.crash_retries,
        "unique_key": None if job.unique is None else storable(job.unique.key or ""),
        "alone": 0,
        "created_at_wall_ms": now_wall_ms,
        "timeout_ms": job.timeout_ms,
        "retry_delay_ms": job.retry_delay_ms,
        "max_retry_delay_ms": job.max_retry_delay_ms,
        "expires_at_wall_ms": job.expires_at_wall_ms,
        "key": None if job.key is None else storable(job.key),
        "traceparent": job.traceparent,
    }
