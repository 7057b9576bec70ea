"""The usage samples of workers: encoding, reading and pruning."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Select, delete, or_, select

from rekindle.actors.facts.records import UsageNoted
from rekindle.actors.facts.usage import Usage

from ..schema.tables import USAGE

MOST_SAMPLES = 20_000
"""Per worker: two weeks of one a minute."""


def usage_values(noted: UsageNoted) -> dict[str, Any]:
    """The columns of a row, rounded to the digits that people read."""
    usage = noted.usage
    return {
        "component_id": noted.component_id,
        "at_wall_ms": noted.at_wall_ms,
        "generation": noted.generation,
        "memory_mb": round(usage.memory_mb, 2),
        "peak_memory_mb": round(noted.peak_memory_mb, 2),
        "cpu_percent": None if usage.cpu_percent is None else round(usage.cpu_percent, 1),
        "threads": usage.threads,
        "descriptors": usage.descriptors,
    }


def usage_noted(row: Any) -> UsageNoted:
    """The sample of a row."""
    usage = Usage(
        memory_mb=row.memory_mb,
        cpu_percent=row.cpu_percent,
        threads=row.threads,
        descriptors=row.descriptors,
    )
    return UsageNoted(
        component_id=row.component_id,
        generation=row.generation,
        at_wall_ms=row.at_wall_ms,
        usage=usage,
        peak_memory_mb=row.peak_memory_mb,
    )


def usages_of(component_id: str, since_wall_ms: int, limit: int) -> Select[*tuple[Any, ...]]:
    """The samples of a worker since this time, newest first."""
    of_worker = (USAGE.c.component_id == component_id, USAGE.c.at_wall_ms >= since_wall_ms)
    return select(USAGE).where(*of_worker).order_by(USAGE.c.at_wall_ms.desc()).limit(max(limit, 0))


def prune_usage(connection: Connection, worker: str, before_ms: int, chunk: int) -> int:
    """Delete a chunk of one worker's samples that are too old or too many; return how many."""
    at, of_worker = USAGE.c.at_wall_ms, USAGE.c.component_id == worker
    newest_first = select(at).where(of_worker).order_by(at.desc())
    one_too_many = connection.scalar(newest_first.limit(1).offset(MOST_SAMPLES))
    old = or_(at < before_ms, at <= (-1 if one_too_many is None else one_too_many))
    gone = connection.scalars(select(at).where(of_worker, old).order_by(at).limit(chunk)).all()
    if gone:
        connection.execute(delete(USAGE).where(of_worker, at <= gone[-1]))
    return len(gone)
