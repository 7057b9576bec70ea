"""The periodic jobs: up to which due time each of them was enqueued."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, Delete, Select, bindparam, delete, select, text, update

from rekindle.actors.facts.jobs import NewJob
from rekindle.actors.facts.queues import PeriodicPlan, PeriodicView

from ..schema.tables import PERIODIC
from .new_jobs import add_jobs

_ALL: Select[*tuple[Any, ...]] = select(PERIODIC).order_by(PERIODIC.c.name)
_FORGET: Delete = delete(PERIODIC).where(PERIODIC.c.name.not_in(bindparam("names", expanding=True)))
_DECLARE = text("""
INSERT INTO rekindle_periodic (name, queue, schedule, last_due_wall_ms, next_due_wall_ms, missed)
VALUES (:name, :queue, :schedule, :now, :next_due, 0) ON CONFLICT (name) DO NOTHING""")


def declare(connection: Connection, plans: Collection[PeriodicPlan], now_wall_ms: int) -> None:
    """Have a row for each of these and no others; one whose schedule changes counts from now on."""
    connection.execute(_FORGET, {"names": [plan.name for plan in plans]})
    for plan in plans:
        values = {"name": plan.name, "queue": plan.queue, "schedule": plan.schedule}
        connection.execute(_DECLARE, {**values, "now": now_wall_ms, "next_due": plan.next_due_wall_ms})
        row = update(PERIODIC).where(PERIODIC.c.name == plan.name)
        connection.execute(row.values(queue=plan.queue))
        changed = {"schedule": plan.schedule, "last_due_wall_ms": now_wall_ms}
        connection.execute(
            row.where(PERIODIC.c.schedule != plan.schedule).values(
                **changed, next_due_wall_ms=plan.next_due_wall_ms
            )
        )


def rows(connection: Connection) -> tuple[PeriodicView, ...]:
    """Every periodic job, by name."""
    return tuple(
        PeriodicView(**{field: getattr(row, field) for field in PeriodicView.__struct_fields__})
        for row in connection.execute(_ALL)
    )


def advance(
    connection: Connection,
    before: PeriodicView,
    after: PeriodicView,
    jobs: Sequence[NewJob],
    now_wall_ms: int,
) -> tuple[int, ...] | None:
    """Move the mark from one due time to another and add the jobs for it; None if another process did.

    The row stays locked until the transaction ends, so of two processes the second finds it moved.
    """
    is_unmoved = (
        PERIODIC.c.name == before.name,
        PERIODIC.c.last_due_wall_ms == before.last_due_wall_ms,
        PERIODIC.c.schedule == before.schedule,
    )
    moved = {
        "last_due_wall_ms": after.last_due_wall_ms,
        "next_due_wall_ms": after.next_due_wall_ms,
        "missed": after.missed,
    }
    if connection.execute(update(PERIODIC).where(*is_unmoved).values(moved)).rowcount != 1:
        return None
    ids = add_jobs(connection, before.queue, jobs, now_wall_ms) if jobs else ()
    if ids:
        named = update(PERIODIC).where(PERIODIC.c.name == before.name)
        connection.execute(named.values(last_job_id=ids[-1]))
    return ids
