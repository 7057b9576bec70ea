"""Releases the job claims of workers that ended, inside the transaction that stores their end.

A job is blamed only for a death that is recorded, and once for each. The end of a worker that was stopped,
or that ended with its supervisor, is not a reason to suspect the job.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Collection, Iterable
from typing import Any

from loguru import logger
from msgspec.structs import replace
from sqlalchemy import Connection, text

from rekindle.actors.deaths.death import Exit
from rekindle.actors.errors import StoreUnavailableError
from rekindle.actors.facts.jobs import (
    BLAMELESS,
    LAST_LINES,
    JobSettled,
    JobState,
    Verdict,
    sound_count,
)
from rekindle.actors.facts.records import ClaimsReleased, FormerClaimsReleased
from rekindle.actors.rules.job_verdicts import verdict_after_crash, verdict_if_ended_for_it
from rekindle.worker.guardian import sweep
from rekindle.worker.jobs import session_name
from rekindle.worker.jobs.claims import with_error

from ..sql.encoding import storable
from . import job_statements as sql

SESSION_END_S = 2.0
"""How long to wait for the end of dead workers' PostgreSQL sessions."""

PROCESS_END_S = 2.0
"""How long to wait for the end of the processes of a former run."""

POLL_S = 0.005

_MARK = re.compile("[0-9a-f]{32}")
"""What marks the processes of a run. Another program may have claimed jobs with a name of its own."""

_OURS = (
    "datname = current_database() AND pid <> pg_backend_pid()"
    f" AND starts_with(application_name, {session_name.OF_STORE})"
).replace("::", r"\:\:")
_NAMED = f"{session_name.OF_STORE} || :name".replace("::", r"\:\:")
# A statement of its own: within a transaction PostgreSQL shows the same sessions until this is run.
_CLEAR = text("SELECT pg_stat_clear_snapshot()")
_END_ONE = text(
    f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {_OURS} AND application_name = {_NAMED}"
)
_END_FORMER = text(
    f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {_OURS}"
    f" AND NOT starts_with(application_name, {_NAMED})"
)


DeathOf = Callable[[str, int], Any]
"""What is recorded of the death of a worker's process, by its number; None: nothing."""


def release_claims(
    connection: Connection, record: ClaimsReleased, death_of: DeathOf | None = None
) -> list[JobSettled]:
    """Requeue the jobs that one incarnation had claimed, or mark them toxic.

    Args:
        death_of: where deaths are recorded, if not in the same database.
    """
    _end_sessions(connection, record)
    of_one = {"worker": record.component_id, "number": record.generation, "run": record.run}
    rows = connection.execute(sql.CLAIMS_OF_ONE, of_one).all()
    return settle_as_recorded(connection, [(row, record) for row in rows], death_of)


def release_former_claims(connection: Connection, record: FormerClaimsReleased) -> list[JobSettled]:
    """The same for every claim of other runs, once no process of theirs is left.

    From the beginning of this transaction on they claim nothing more (`worker/jobs/sql.py`).
    """
    _end_sessions(connection, record)
    held = connection.execute(sql.CLAIMS_OF_FORMER_RUNS, {"run": record.run}).all()
    alive = _still_alive({row.claimed_run for row in held if row.claimed_run})
    rows = [row for row in held if row.claimed_run not in alive]
    ends = [record.of(row.claimed_by or "", row.claimed_generation or 0) for row in rows]
    return settle_as_recorded(connection, zip(rows, ends, strict=True))


def settle_as_recorded(
    connection: Connection, ends: Iterable[tuple[Any, ClaimsReleased]], death_of: DeathOf | None = None
) -> list[JobSettled]:
    """Settle jobs whose workers ended, by what is recorded of their deaths."""
    return settle(connection, [(row, _as_recorded(connection, row, end, death_of)) for row, end in ends])


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
        statement, names = _END_FORMER, {"name": session_name.of_run(gone.run)}
    deadline = time.monotonic() + SESSION_END_S
    while connection.execute(statement, names).first() is not None:
        if time.monotonic() > deadline:
            raise StoreUnavailableError("sessions of dead workers did not end in time")
        time.sleep(POLL_S)
        connection.execute(_CLEAR)


def _still_alive(runs: Collection[str]) -> set[str]:
    """End the processes of these runs; the runs of which some cannot be ended, which keep their claims."""
    alive = {run for run in runs if _MARK.fullmatch(run) and not sweep(run, PROCESS_END_S)}
    if alive:
        logger.error("store: processes of a former run cannot be ended; their jobs stay claimed")
    return alive


def _as_recorded(
    connection: Connection, row: Any, end: ClaimsReleased, death_of: DeathOf | None
) -> ClaimsReleased:
    """The end of a job's worker; it counts only if the death is recorded and not yet held against the job."""
    is_cancelled = row.cancel_requested_at_wall_ms is not None
    attempt = sound_count(row.attempts) or 0
    if is_cancelled or not end.may_blame(row.id, attempt):
        return replace(end, counted=False)
    worker = {"worker": end.component_id, "number": end.generation}
    of_job = {**worker, "job": row.id, "attempt": attempt}
    if death_of is None:
        death = connection.execute(sql.DEATH_OF, worker).first()
        blamed = connection.execute(sql.BLAMED, of_job).first()
    else:
        death = death_of(end.component_id, end.generation)
        blamed = connection.execute(sql.BLAMED_ON_NODE, of_job).first()
    if death is None or {death.cause, death.action} & BLAMELESS or blamed is not None:
        return replace(end, counted=False)
    if end.cause:
        return end
    exit_ = Exit(death.exit_code, death.signal)
    return replace(end, cause=str(exit_), exit_code=exit_.code, signal=exit_.signal)


def settle(connection: Connection, held: Iterable[tuple[Any, ClaimsReleased]]) -> list[JobSettled]:
    """Requeue jobs, or end them, and keep the evidence of what counts against them."""
    settled, updates, evidence = [], [], []
    for row, end in held:
        count = sound_count(row.crash_count)
        if count is None:
            logger.warning(
                "store: job {} has an invalid crash count, taken as 0: {!r}", row.id, row.crash_count
            )
        retries = end.crash_retries if row.crash_retries is None else row.crash_retries
        verdict = verdict_if_ended_for_it(row, end, count or 0) or verdict_after_crash(
            count or 0, counted=end.counted, retries=retries, alone=bool(row.alone)
        )
        updates.append(_settlement(row, end, verdict))
        evidence += [evidence_of(row, end)] if end.counted else []
        settled.append(
            JobSettled(
                job_id=row.id,
                queue=row.queue,
                component_id=end.component_id,
                generation=end.generation,
                state=verdict.state,
                crash_count=verdict.crash_count,
                counted=end.counted,
                timed_out=verdict.timed_out,
            )
        )
    if updates:
        connection.execute(sql.SETTLE, updates)
        notify_workers(connection)
    if evidence:
        connection.execute(sql.ADD_CRASHES, evidence)
    return settled


def _settlement(row: Any, end: ClaimsReleased, verdict: Verdict) -> dict[str, Any]:
    at, attempt = end.at_wall_ms, sound_count(row.attempts) or 0
    failures, errors = sound_count(row.error_count) or 0, row.errors
    if verdict.timed_out:
        failures += 1
        began = row.started_at_wall_ms
        errors = with_error(errors, attempt, at, end.component_id, verdict.error or "", began)
    return {
        "job": row.id,
        "new_state": verdict.state.value,
        "crashes": verdict.crash_count,
        "verdict": verdict.error,
        "toxic_since": at if verdict.state is JobState.TOXIC else None,
        "ended_at": None if verdict.state is JobState.PENDING else at,
        "failures": failures,
        "all_errors": errors,
        "retry_at": at + round(verdict.retry_in_s * 1000) if verdict.timed_out else None,
    }


def evidence_of(row: Any, end: ClaimsReleased) -> dict[str, Any]:
    """The values of a row of evidence."""
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
        "began_at_wall_ms": row.started_at_wall_ms,
    }
