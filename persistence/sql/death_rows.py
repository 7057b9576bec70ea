"""Encodes deaths as rows. A column with the name of a field of the record is declared in the table alone."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from sqlalchemy import Text

from rekindle.actors.facts.records import DeathRecord

from ..schema.tables import DEATH
from .encoding import job_text, storable


def _death_text(column: str) -> Callable[[Any], str | None]:
    match column:
        case "component_id":
            return str
        case "job":
            return job_text
        case _:
            return lambda value: None if value is None else storable(str(value))


NOTED_LATER = frozenset({"work_item", "released"})
"""The columns of a death that are written when its work item has been released."""
DEATH_COLUMNS = tuple(
    column.name
    for column in DEATH.columns
    if column.name in DeathRecord.__struct_fields__ and column.name not in NOTED_LATER
)
"""The columns of a death that have the names of the record's fields."""

# Built once: a death is written between the exit of a worker and its restart.
_death_fields = attrgetter(*DEATH_COLUMNS)
_DEATH_TEXTS = tuple(
    (name, _death_text(name)) for name in DEATH_COLUMNS if isinstance(DEATH.columns[name].type, Text)
)


def death_values(death: DeathRecord) -> dict[str, Any]:
    """The columns of a death row."""
    values = dict(zip(DEATH_COLUMNS, _death_fields(death), strict=True))
    for name, encoded in _DEATH_TEXTS:
        values[name] = encoded(values[name])
    return values
