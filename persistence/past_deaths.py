"""Reads one worker's deaths from a store, without owning it."""

from __future__ import annotations

import os

from sqlalchemy import select

from rekindle.actors.errors import StoreTooNewError
from rekindle.actors.facts.records import DeathRecord

from .database.driver_errors import translated
from .database.read_only_engine import read_only_engine
from .schema.migrate import REVISIONS, revision_of
from .schema.tables import DEATH
from .sql.decoding import death_record

# The columns of the first revision, which all later ones have: an older store needs no upgrade to be read.
_COLUMNS = (
    *(DEATH.c.id, DEATH.c.component_id, DEATH.c.generation, DEATH.c.died_at_wall_ms, DEATH.c.cause),
    *(DEATH.c.exit_code, DEATH.c.signal, DEATH.c.uptime_ms, DEATH.c.job),
    *(DEATH.c.action, DEATH.c.reason, DEATH.c.delay_ms),
)


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
    statement = select(*_COLUMNS).where(DEATH.c.component_id == component_id)
    statement = statement.order_by(DEATH.c.generation.desc()).limit(limit)
    with translated(name), engine.connect() as connection:
        revision = revision_of(connection)
        if revision is None:
            return ()
        if revision not in REVISIONS:
            raise StoreTooNewError(f"the store {name} was written by a newer Rekindle (revision {revision})")
        return tuple(death_record(row) for row in connection.execute(statement))
