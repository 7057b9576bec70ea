"""Looks at a store without being its supervisor: revision, soundness, how much is in it.

Nothing is created, migrated or locked, so a store may be looked at while a supervisor works with it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, Engine, func, inspect, make_url, select, text
from sqlalchemy.exc import ArgumentError

from rekindle.actors.errors import StoreDamagedError, StoreError, StoreUnavailableError

from .database_file import prepare
from .engines import postgresql_engine, sqlite_engine
from .failures import translated
from .migrate import REVISIONS, VERSION_TABLE
from .tables import METADATA

_PATIENCE_MS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreCheck:
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
    engine, name = _engine(os.fspath(where))
    with translated(name), engine.connect() as connection:
        problems = _problems(connection)
        return StoreCheck(
            name=name,
            revision=_revision(connection),
            newest=REVISIONS[-1],
            problems=problems,
            rows={} if problems else _rows(connection),
        )


def _engine(where: str) -> tuple[Engine, str]:
    if "://" not in where:
        return _sqlite(where)
    try:
        url = make_url(where)
    except ArgumentError as error:
        raise StoreError(f"{where!r} is no address of a store") from error
    shown = url.render_as_string(hide_password=True)
    match url.get_backend_name():
        case "sqlite" if url.database:
            return _sqlite(url.database)
        case "postgresql" | "postgres":
            return postgresql_engine(url, lock_timeout_ms=_PATIENCE_MS), shown
        case _:
            raise StoreError(f"{shown!r} names neither an SQLite file nor a PostgreSQL database")


def _sqlite(path: str) -> tuple[Engine, str]:
    database = Path(os.path.realpath(path))
    try:
        size = database.stat().st_size
    except OSError as error:
        raise StoreUnavailableError(f"there is no store at {database}: {error.strerror}") from error
    if size == 0:
        raise StoreDamagedError(f"the store {database} is empty")
    prepare(database, _never)
    pragmas: dict[str, str | int] = {"busy_timeout": _PATIENCE_MS, "query_only": "ON"}
    return sqlite_engine(str(database), begin="BEGIN", pragmas=pragmas), str(database)


def _never(database: Path) -> None:
    raise StoreUnavailableError(f"the store {database} has just gone away")


def _problems(connection: Connection) -> tuple[str, ...]:
    if connection.dialect.name != "sqlite":
        return ()  # PostgreSQL looks after its own pages
    found = connection.execute(text("PRAGMA integrity_check(10)")).scalars()
    return tuple(" ".join(line.replace("***", " ").split()) for line in found if line != "ok")


def _revision(connection: Connection) -> str | None:
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
