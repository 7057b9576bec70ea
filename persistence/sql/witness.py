"""Whether a commit whose answer was lost happened: one of its own rows tells.

A server may commit and break the connection before it answers. A batch is one transaction, so any row of
it that only this batch can have written shows that all of it is stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Select, select

from rekindle.actors.facts.audit_entry import AuditEntry
from rekindle.actors.facts.records import DeathRecord, EventRecord

from ..schema.tables import AUDIT, DEATH, EVENT
from .encoding import audit_values, event_values


def witness(records: Iterable[object]) -> Select[*tuple[Any, ...]] | None:
    """A query that finds a row if the records are stored; None if a repetition of them changes nothing."""
    deaths: list[Select[*tuple[Any, ...]]] = []
    for record in records:
        match record:
            case EventRecord():
                values = event_values(record)
                return select(EVENT.c.id).where(*(EVENT.c[name] == value for name, value in values.items()))
            case AuditEntry():
                values = audit_values(record)
                same = (AUDIT.c[name].is_not_distinct_from(value) for name, value in values.items())
                return select(AUDIT.c.id).where(*same)
            case DeathRecord(component_id=worker, generation=generation, died_at_wall_ms=at):
                key = (DEATH.c.component_id == worker, DEATH.c.generation == generation)
                deaths.append(select(DEATH.c.id).where(*key, DEATH.c.died_at_wall_ms == at))
            case _:
                pass
    return deaths[0] if deaths else None
