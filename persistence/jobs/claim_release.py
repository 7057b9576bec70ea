"""What becomes of the jobs of those who are gone, inside the transaction that keeps their end."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from loguru import logger
from sqlalchemy import Connection, text

from rekindle.actors.facts.jobs import LAST_LINES, JobSettled, judged, sound_count
from rekindle.actors.facts.records import ClaimsReleased, FormerClaimsReleased

from ..sql.encoding import storable
from . import job_statements as sql
from .dead_sessions import end_sessions


def release_claims(connection: Connection, record: ClaimsReleased) -> list[JobSettled]:
    """Requeue or convict the jobs that one incarnation had claimed."""
    end_sessions(connection, record)
    of_one = {"worker": record.component_id, "number": record.generation, "run": record.run}
    rows = connection.execute(sql.CLAIMS_OF_ONE, of_one).all()
    return _settle(connection, ((row, record) for row in rows))


def release_former_claims(connection: Connection, record: FormerClaimsReleased) -> list[JobSettled]:
    """The same for everything that was claimed in other runs."""
    end_sessions(connection, record)
    rows = connection.execute(sql.CLAIMS_OF_FORMER_RUNS, {"run": record.run}).all()
    return _settle(
        connection, ((row, record.of(row.claimed_by or "", row.claimed_generation or 0)) for row in rows)
    )


def notify_workers(connection: Connection) -> None:
    """Wake those who wait for jobs once this transaction is in; SQLite's look for themselves."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_notify(:channel, '')"), {"channel": sql.CHANNEL})


def _settle(connection: Connection, held: Iterable[tuple[Any, ClaimsReleased]]) -> list[JobSettled]:
    settled, updates, evidence = [], [], []
    for row, end in held:
        count = sound_count(row.crash_count)
        if count is None:
            logger.warning("job {} has the crash count {!r}: counted as 0", row.id, row.crash_count)
        verdict = judged(count or 0, counted=end.counted, retries=end.crash_retries, alone=bool(row.alone))
        toxic_since = None if verdict.error is None else end.at_wall_ms
        updates.append(
            {
                "job": row.id,
                "new_state": verdict.state.value,
                "crashes": verdict.crash_count,
                "said": verdict.error,
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
