"""Looks at a store without being its supervisor: revision, soundness, how much is in it.

Nothing is created, migrated or locked, so a store may be looked at while a supervisor works with it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec
from sqlalchemy import Connection, func, inspect, select, text

from .database.driver_errors import translated
from .database.read_only_engine import read_only_engine
from .schema.migrate import REVISIONS, VERSION_TABLE
from .schema.tables import METADATA


class StoreCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What was found."""

    name: str
    """The file, or the address without its password."""
    revision: str | None
    """None: Rekindle has never been here."""
    newest: str
    problems: tuple[str, ...]
    """What the database says is wrong with it; empty when it is sound."""
    rows: Mapping[str, int]
    """How many rows each of our tables has; those that are not there are left out."""

    @property
    def current(self) -> bool:
        """Whether there is nothing to upgrade."""
        return self.revision == self.newest

    @property
    def known(self) -> bool:
        """Whether this Rekindle can work with it, after an upgrade if need be."""
        return self.revision is None or self.revision in REVISIONS


def check_store(where: str | os.PathLike[str]) -> StoreCheck:
    """Look at a store.

    Args:
        where: the path of an SQLite file, `sqlite:///path`, or `postgresql://…`.

    Raises:
        StoreDamagedError: it is no database, or so broken that nothing can be said of it.
        StoreUnavailableError: it is not there, or cannot be read now.
        StoreError: the address makes no sense.
    """
    engine, name = read_only_engine(os.fspath(where))
    with translated(name), engine.connect() as connection:
        problems = _problems(connection)
        return StoreCheck(
            name=name,
            revision=revision_of(connection),
            newest=REVISIONS[-1],
            problems=problems,
            rows={} if problems else _rows(connection),
        )


def is_current(where: str | os.PathLike[str]) -> bool:
    """Whether a store's tables are those of this Rekindle.

    Raises:
        StoreError: as `check_store` does.
    """
    engine, name = read_only_engine(os.fspath(where))
    with translated(name), engine.connect() as connection:
        return revision_of(connection) == REVISIONS[-1]


def _problems(connection: Connection) -> tuple[str, ...]:
    if connection.dialect.name != "sqlite":
        return ()  # PostgreSQL looks after its own pages
    found = connection.execute(text("PRAGMA integrity_check(10)")).scalars()
    return tuple(" ".join(line.replace("***", " ").split()) for line in found if line != "ok")


def revision_of(connection: Connection) -> str | None:
    """The revision that a store names; None if Rekindle has never been there."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found = connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}"))
    return None if found is None else str(found)


def _rows(connection: Connection) -> dict[str, int]:
    there = set(inspect(connection).get_table_names())
    return {
        table.name: connection.scalar(select(func.count()).select_from(table)) or 0
        for table in METADATA.sorted_tables
        if table.name in there
    }
