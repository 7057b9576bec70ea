"""Deletes rows that are too old, a chunk at a time, so that no other writer waits long.

Events are deleted oldest first, so that the stored ones have no gap, and the newest stays: numbering
continues from it. The latest deaths of a worker stay however old they are: restart decisions need
them. The evidence of a death is deleted with it.
"""

from __future__ import annotations

from sqlalchemy import Connection, delete, exists, func, select, union_all

from rekindle.actors.facts.records import RECENT_DEATHS
from rekindle.actors.spec.policies.retention_policy import Retention

from .jobs.job_retention import DAY_MS, JobSizes, prune_jobs
from .schema.tables import AUDIT, BUNDLE, DEATH, EVENT, RUN, USAGE
from .sql.run_rows import prune_runs
from .sql.usage_rows import prune_usage

CHUNK = 500


class Pruning:
    """Goes through the tables, and then through the workers, one step at a time."""

    def __init__(self) -> None:
        self._worker = ""
        """The worker that was pruned last."""
        self._sizes = JobSizes()

    def step(self, connection: Connection, retention: Retention, now_wall_ms: int) -> bool:
        """Delete one chunk; return whether there may be more to delete."""
        history_ms = now_wall_ms - round(retention.history_days * DAY_MS)
        events_ms = now_wall_ms - round(retention.event_days * DAY_MS)
        if self._prune_events(connection, retention, events_ms):
            return True
        if self._prune_audit(connection, retention.audit_count, history_ms):
            return True
        # Once a round: the query passes over pending jobs, and there may be very many of them.
        if not self._worker and (
            prune_jobs(connection, retention, now_wall_ms, CHUNK)
            or self._sizes.step(connection, retention, CHUNK)
        ):
            return True
        return self._prune_worker(connection, history_ms, events_ms)

    def _prune_events(self, connection: Connection, retention: Retention, before_ms: int) -> bool:
        newest = connection.scalar(select(func.max(EVENT.c.id))) or 0
        oldest = connection.execute(
            select(EVENT.c.id, EVENT.c.at_wall_ms).order_by(EVENT.c.id).limit(CHUNK)
        ).all()
        gone = 0
        for number, at_wall_ms in oldest:
            if number == newest or (number > newest - retention.event_count and at_wall_ms >= before_ms):
                break
            gone = number
        if gone:
            connection.execute(delete(EVENT).where(EVENT.c.id <= gone))
        return bool(oldest) and gone == oldest[-1][0]

    def _prune_audit(self, connection: Connection, most: int, before_ms: int) -> bool:
        newest = connection.scalar(select(func.max(AUDIT.c.id))) or 0
        oldest = connection.execute(
            select(AUDIT.c.id, AUDIT.c.at_wall_ms).order_by(AUDIT.c.id).limit(CHUNK)
        ).all()
        gone = [number for number, at in oldest if at < before_ms or number <= newest - most]
        if gone:
            connection.execute(delete(AUDIT).where(AUDIT.c.id.in_(gone)))
        return len(gone) == CHUNK

    def _prune_worker(self, connection: Connection, history_ms: int, usage_ms: int) -> bool:
        """Delete a chunk of one worker's old rows; move on to the next worker if that was all."""
        worker = _following(connection, self._worker)
        if worker is None:
            self._worker, self._sizes = "", JobSizes()
            return False
        deaths = _prune_deaths(connection, worker, history_ms)
        _prune_ends(connection, worker, history_ms)
        runs = prune_runs(connection, worker, history_ms, CHUNK)
        if max(deaths, runs, prune_usage(connection, worker, usage_ms, CHUNK)) < CHUNK:
            self._worker = worker
        return True


def _following(connection: Connection, worker: str) -> str | None:
    """The worker after this one that has rows."""
    columns = (DEATH.c.component_id, USAGE.c.component_id, BUNDLE.c.component_id, RUN.c.component_id)
    firsts = union_all(*(select(func.min(each).label("id")).where(each > worker) for each in columns))
    # Sorted by the database: its collation may differ from Python's.
    found: str | None = connection.scalar(select(func.min(firsts.subquery().c.id)))
    return found


def _prune_deaths(connection: Connection, worker: str, before_ms: int) -> int:
    of_worker = DEATH.c.component_id == worker
    kept_from = connection.scalar(
        select(DEATH.c.generation)
        .where(of_worker)
        .order_by(DEATH.c.generation.desc())
        .limit(1)
        .offset(RECENT_DEATHS - 1)
    )
    old = select(DEATH.c.id, DEATH.c.generation).where(
        of_worker, DEATH.c.generation < (kept_from or 0), DEATH.c.died_at_wall_ms < before_ms
    )
    gone = connection.execute(old.order_by(DEATH.c.generation).limit(CHUNK)).all()
    if gone:
        connection.execute(delete(DEATH).where(DEATH.c.id.in_([row.id for row in gone])))
        # By time as well: a death with a later timestamp (a wrong clock) stays, and so does its evidence.
        evidence = (BUNDLE.c.component_id == worker, BUNDLE.c.generation <= gone[-1].generation)
        connection.execute(delete(BUNDLE).where(*evidence, BUNDLE.c.at_wall_ms < before_ms))
    return len(gone)


def _prune_ends(connection: Connection, worker: str, before_ms: int) -> None:
    """Delete the old evidence of ends that were not deaths; there is never much of it."""
    dead = exists().where(DEATH.c.component_id == worker, DEATH.c.generation == BUNDLE.c.generation)
    old = (BUNDLE.c.component_id == worker, BUNDLE.c.at_wall_ms < before_ms)
    connection.execute(delete(BUNDLE).where(*old, ~dead))
