"""Reads one worker's deaths from a store, without owning it."""

from __future__ import annotations

import os
from typing import Any

from sqlalchemy import Connection, Select, inspect, select

from rekindle.actors.errors import StoreTooNewError
from rekindle.actors.facts.records import DeathRecord

from .database.driver_errors import translated
from .database.read_only_engine import read_only_engine
from .schema.migrate import REVISIONS, revision_of
from .schema.tables import DEATH
from .sql.decoding import death_record


def recorded_deaths(
    where: str | os.PathLike[str], component_id: str, *, limit: int = 1000
) -> tuple[DeathRecord, ...]:
    """The latest deaths of one worker, newest first; none if the store does not know it.

    Args:
        where: the path of an SQLite file, `sqlite:///path`, or `postgresql://…`.
        component_id: the worker.
        limit: how many at most.

    Raises:
        StoreDamagedError: it is not a database, or a corrupt one.
        StoreTooNewError: a newer Rekindle wrote it.
        StoreUnavailableError: it does not exist, or cannot be read now.
        StoreError: the address is invalid.
    """
    engine, name = read_only_engine(os.fspath(where))
    with translated(name), engine.connect() as connection:
        revision = revision_of(connection)
        if revision is None:
            return ()
        if revision not in REVISIONS:
            raise StoreTooNewError(f"the store {name} was written by a newer Rekindle (revision {revision})")
        deaths = _columns(connection).where(DEATH.c.component_id == component_id)
        found = connection.execute(deaths.order_by(DEATH.c.generation.desc()).limit(limit))
        return tuple(death_record(row) for row in found)


def _columns(connection: Connection) -> Select[*tuple[Any, ...]]:
    """The columns that this store has: an older one is read as it is, without an upgrade."""
    stored = {column["name"] for column in inspect(connection).get_columns(DEATH.name)}
    return select(*(column for column in DEATH.columns if column.name in stored))
