"""Releases the claims of workers that are no longer assigned to the node where they claimed.

A claim of a worker in a cluster is in force for as long as its assignment is. The loss of a node frees its
assignments and releases the claims in one transaction; what a statement that was under way claims after that
is found by the next look. Nothing of it counts against a job, but it is kept as evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Connection, Row, text

from rekindle.actors.facts.jobs import JobSettled
from rekindle.actors.facts.records import ClaimsReleased, FormerClaimsReleased

from ..database.wall_clock import wall_ms
from ..jobs import job_statements as jobs
from ..jobs.claim_release import DeathOf, evidence_of, settle, settle_as_recorded

# `claimed_by >= ''` is there for the planner: it is the first column of the index of running jobs. A job
# whose end is being recorded is locked, and passed over.
_RUNNING = f"""
SELECT {", ".join(f"job.{column.name}" for column in jobs.CLAIM_COLUMNS)}, job.claimed_node,
    (tenure.component_id IS NULL OR tenure.how = 'lost') AS lost
FROM rekindle_job AS job LEFT JOIN rekindle_tenure AS tenure
    ON tenure.component_id = job.claimed_by AND tenure.epoch = job.claimed_epoch
WHERE job.state = 'running' AND job.claimed_by >= '' AND job.claimed_epoch IS NOT NULL AND """
_ASSIGNED = """EXISTS (
    SELECT 1 FROM rekindle_assignment AS own
    WHERE own.component_id = job.claimed_by AND own.epoch = job.claimed_epoch AND own.node_id """
_LOCKED = ") ORDER BY job.id FOR UPDATE OF job SKIP LOCKED"

_ORPHANED = text(f"{_RUNNING} NOT {_ASSIGNED} IS NOT NULL {_LOCKED}")
_OF_FORMER_RUNS = text(f"{_RUNNING} job.claimed_run <> :run AND {_ASSIGNED} = :node_id {_LOCKED}")
_COUNT_LOST = text("UPDATE rekindle_job SET lost_count = lost_count + 1 WHERE id = :job")


def release_orphaned(connection: Connection) -> list[JobSettled]:
    """Put back every job whose worker is no longer assigned to the node where it took the job."""
    rows = connection.execute(_ORPHANED).all()
    now = wall_ms()
    ends = [(row, _end(row, now)) for row in rows]
    _note_losses(connection, [(row, end) for row, end in ends if row.lost])
    return settle(connection, ends)


def release_former(
    connection: Connection, record: FormerClaimsReleased, node_id: str, death_of: DeathOf
) -> list[JobSettled]:
    """The same for what former lives of this node's supervisor had claimed; none of their processes lives."""
    rows = connection.execute(_OF_FORMER_RUNS, {"run": record.run, "node_id": node_id}).all()
    ends = [(row, record.of(row.claimed_by, row.claimed_generation)) for row in rows]
    return settle_as_recorded(connection, ends, death_of)


def _end(row: Row[Any], now_wall_ms: int) -> ClaimsReleased:
    return ClaimsReleased(
        component_id=row.claimed_by,
        generation=row.claimed_generation,
        run=row.claimed_run,
        at_wall_ms=now_wall_ms,
        counted=False,
        is_late=True,
    )


def _note_losses(connection: Connection, lost: Sequence[tuple[Row[Any], ClaimsReleased]]) -> None:
    if lost:
        connection.execute(_COUNT_LOST, [{"job": row.id} for row, _ in lost])
        evidence = [evidence_of(row, replace(end, cause=_why(row))) for row, end in lost]
        connection.execute(jobs.ADD_CRASHES, evidence)


def _why(row: Row[Any]) -> str:
    return f"node {row.claimed_node} was lost"
