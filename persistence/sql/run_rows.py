"""The runs of scheduled workers: encoding, reading and pruning."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Insert, Select, delete, or_, select

from rekindle.actors.facts.runs import Hindrance, Run, RunState, Trigger

from ..schema.tables import RUN
from .encoding import storable

MOST_RUNS = 10_000
"""Per worker."""

_KEY = ("component_id", "number")


def keep_run(insert: Any) -> Insert:
    """Write a run, in place of its earlier state; made with a dialect's own `insert`."""
    statement = insert(RUN)
    changed = {column.name: statement.excluded[column.name] for column in RUN.c if column.name not in _KEY}
    kept: Insert = statement.on_conflict_do_update(index_elements=list(_KEY), set_=changed)
    return kept


def run_values(run: Run) -> dict[str, Any]:
    """The columns of a row."""
    return {
        "component_id": run.component_id,
        "number": run.number,
        "state": run.state.value,
        "trigger": run.trigger.value,
        "due_wall_ms": run.due_wall_ms,
        "last_due_wall_ms": run.last_due_wall_ms,
        "times": run.times,
        "started_at_wall_ms": run.started_at_wall_ms,
        "ended_at_wall_ms": run.ended_at_wall_ms,
        "attempts": run.attempts,
        "exit_code": run.exit_code,
        "signal": run.signal,
        "reason": None if run.reason is None else run.reason.value,
        "detail": storable(run.detail),
    }


def run_of(row: Any) -> Run:
    """The run of a row."""
    return Run(
        component_id=row.component_id,
        number=row.number,
        state=RunState(row.state),
        trigger=Trigger(row.trigger),
        due_wall_ms=row.due_wall_ms,
        last_due_wall_ms=row.last_due_wall_ms,
        times=row.times,
        started_at_wall_ms=row.started_at_wall_ms,
        ended_at_wall_ms=row.ended_at_wall_ms,
        attempts=row.attempts,
        exit_code=row.exit_code,
        signal=row.signal,
        reason=None if row.reason is None else Hindrance(row.reason),
        detail=row.detail,
    )


def runs_of(component_id: str, limit: int) -> Select[*tuple[Any, ...]]:
    """The runs of a worker, newest first."""
    of_worker = select(RUN).where(RUN.c.component_id == component_id)
    return of_worker.order_by(RUN.c.number.desc()).limit(max(limit, 0))


def prune_runs(connection: Connection, worker: str, before_ms: int, chunk: int) -> int:
    """Delete a chunk of one worker's runs that are too old or too many; return how many."""
    number, of_worker = RUN.c.number, RUN.c.component_id == worker
    newest_first = select(number).where(of_worker).order_by(number.desc())
    one_too_many = connection.scalar(newest_first.limit(1).offset(MOST_RUNS))
    old = or_(RUN.c.due_wall_ms < before_ms, number <= (-1 if one_too_many is None else one_too_many))
    gone = connection.scalars(select(number).where(of_worker, old).order_by(number).limit(chunk)).all()
    if gone:
        connection.execute(delete(RUN).where(of_worker, number.in_(gone)))
    return len(gone)
