"""Releases the job claims of dead workers, inside the transaction that stores their end."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import Any

from loguru import logger
from sqlalchemy import Connection, text

from rekindle.actors.errors import StoreUnavailableError
from rekindle.actors.facts.jobs import LAST_LINES, JobSettled, judged, sound_count
from rekindle.actors.facts.records import ClaimsReleased, FormerClaimsReleased
from rekindle.worker.jobs import session_name

from ..sql.encoding import storable
from . import job_statements as sql

SESSION_END_S = 2.0
"""How long to wait for the end of dead workers' PostgreSQL sessions."""

POLL_S = 0.005

_OURS = "datname = current_database() AND pid <> pg_backend_pid()"
# A statement of its own: within a transaction PostgreSQL shows the same sessions until this is run.
_CLEAR = text("SELECT pg_stat_clear_snapshot()")
_END_ONE = text(
    f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {_OURS} AND application_name = :name"
)
_END_FORMER = text(
    f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {_OURS}"
    " AND starts_with(application_name, :all) AND NOT starts_with(application_name, :name)"
)


def release_claims(connection: Connection, record: ClaimsReleased) -> list[JobSettled]:
    """Requeue the jobs that one incarnation had claimed, or mark them toxic."""
    _end_sessions(connection, record)
    of_one = {"worker": record.component_id, "number": record.generation, "run": record.run}
    rows = connection.execute(sql.CLAIMS_OF_ONE, of_one).all()
    return _settle(connection, ((row, record) for row in rows))


def release_former_claims(connection: Connection, record: FormerClaimsReleased) -> list[JobSettled]:
    """The same for every claim of other runs."""
    _end_sessions(connection, record)
    rows = connection.execute(sql.CLAIMS_OF_FORMER_RUNS, {"run": record.run}).all()
    return _settle(
        connection, ((row, record.of(row.claimed_by or "", row.claimed_generation or 0)) for row in rows)
    )


def notify_workers(connection: Connection) -> None:
    """Wake the workers that wait for jobs once this transaction is committed; with SQLite they poll."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_notify(:channel, '')"), {"channel": sql.CHANNEL})


def _end_sessions(connection: Connection, gone: ClaimsReleased | FormerClaimsReleased) -> None:
    """End the PostgreSQL sessions of dead workers and wait for it; until then their claims may change.

    Raises:
        StoreUnavailableError: the server did not end them in time.
    """
    if connection.dialect.name != "postgresql":
        return
    if isinstance(gone, ClaimsReleased):
        statement = _END_ONE
        names = {"name": session_name.of_worker(gone.component_id, gone.generation, gone.run)}
    else:
        statement, names = _END_FORMER, {"all": session_name.PREFIX, "name": session_name.of_run(gone.run)}
    deadline = time.monotonic() + SESSION_END_S
    while connection.execute(statement, names).first() is not None:
        if time.monotonic() > deadline:
            raise StoreUnavailableError("sessions of dead workers did not end in time")
        time.sleep(POLL_S)
        connection.execute(_CLEAR)


def _settle(connection: Connection, held: Iterable[tuple[Any, ClaimsReleased]]) -> list[JobSettled]:
    settled, updates, evidence = [], [], []
    for row, end in held:
        count = sound_count(row.crash_count)
        if count is None:
            logger.warning(
                "store: job {} has an invalid crash count, taken as 0: {!r}", row.id, row.crash_count
            )
        verdict = judged(count or 0, counted=end.counted, retries=end.crash_retries, alone=bool(row.alone))
        toxic_since = None if verdict.error is None else end.at_wall_ms
        updates.append(
            {
                "job": row.id,
                "new_state": verdict.state.value,
                "crashes": verdict.crash_count,
                "verdict": verdict.error,
                "toxic_since": toxic_since,
            }
        )
        evidence += [_crash(row, end)] if end.counted else []
        settled.append(
            JobSettled(
                job_id=row.id,
                queue=row.queue,
                component_id=end.component_id,
                generation=end.generation,
                state=verdict.state,
                crash_count=verdict.crash_count,
                counted=end.counted,
            )
        )
    if updates:
        connection.execute(sql.SETTLE, updates)
        notify_workers(connection)
    if evidence:
        connection.execute(sql.ADD_CRASHES, evidence)
    return settled


def _crash(row: Any, end: ClaimsReleased) -> dict[str, Any]:
    return {
        "job_id": row.id,
        "attempt": sound_count(row.attempts) or 0,
        "at_wall_ms": end.at_wall_ms,
        "component_id": end.component_id,
        "generation": end.generation,
        "cause": storable(end.cause),
        "exit_code": end.exit_code,
        "signal": end.signal,
        "output": json.dumps(end.output[-LAST_LINES:]),
    }
