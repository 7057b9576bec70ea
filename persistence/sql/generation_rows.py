"""The numbers of the workers' processes: the statements, and the values of the records."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import Insert, Select, bindparam, case, select

from rekindle.actors.facts.generations import (
    GenerationEnded,
    GenerationsReserved,
    GenerationsSettled,
    GenerationStarted,
    mark_after,
)

from ..schema.tables import GENERATION

LOAD_GENERATIONS: Select[*tuple[Any, ...]] = select(GENERATION)


class GenerationUpserts(msgspec.Struct, frozen=True):
    """One statement for each record; each creates the row if it is missing."""

    reserve: Insert
    settle: Insert
    start: Insert
    end: Insert


def generation_upserts(insert: Any) -> GenerationUpserts:
    """The statements, made with a dialect's own `insert`."""

    def upsert(**changes: Any) -> Insert:
        statement = insert(GENERATION).values(
            component_id=bindparam("worker"),
            reserved=bindparam("mark"),
            started=bindparam("begun"),
            started_at_wall_ms=bindparam("at"),
            ended=bindparam("over"),
        )
        new = {name: change(statement.excluded) for name, change in changes.items()}
        result: Insert = statement.on_conflict_do_update(index_elements=["component_id"], set_=new)
        return result

    def higher(new: Any) -> Any:
        return case((GENERATION.c.reserved > new.reserved, GENERATION.c.reserved), else_=new.reserved)

    return GenerationUpserts(
        reserve=upsert(reserved=higher),
        settle=upsert(reserved=lambda new: new.reserved),
        start=upsert(started=lambda new: new.started, started_at_wall_ms=lambda new: new.started_at_wall_ms),
        end=upsert(ended=lambda new: new.ended),
    )


def reserved_values(record: GenerationsReserved) -> dict[str, Any]:
    """The values of a reservation."""
    return {"worker": record.component_id, "mark": record.up_to, "begun": 0, "at": 0, "over": 0}


def settled_values(record: GenerationsSettled) -> dict[str, Any]:
    """The values at an orderly end."""
    return {"worker": record.component_id, "mark": record.last, "begun": 0, "at": 0, "over": 0}


def started_values(record: GenerationStarted) -> dict[str, Any]:
    """The values of a start."""
    worker, number = record.component_id, record.generation
    return {"worker": worker, "mark": mark_after(number), "begun": number, "at": record.at_wall_ms, "over": 0}


def ended_values(record: GenerationEnded) -> dict[str, Any]:
    """The values of an end by a stop."""
    worker, number = record.component_id, record.generation
    return {"worker": worker, "mark": mark_after(number), "begun": number, "at": 0, "over": number}
