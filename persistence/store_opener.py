"""From a path or an address to a store that is sound, up to date and ours."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from sqlalchemy import URL, Engine, make_url
from sqlalchemy.exc import ArgumentError

from rekindle.actors.errors import StoreDamagedError, StoreError, StoreUnavailableError

from .database.database_file import locked, prepare, side_file
from .database.driver_errors import translated
from .database.engines import BEGIN_WRITING, postgresql_engine, sqlite_engine
from .database.ownership import FileOwnership, Ownership, ServerOwnership, Unowned
from .database.read_only_engine import read_only_engine
from .database.wal_preallocation import make_room
from .schema import migrate
from .store import SqlStore

PAGE_SIZE = 1024

CHECKPOINT_AFTER = 4000
"""So many pages may gather in the log: the 4 MB that SQLite has in mind, with pages four times as large.
Whoever writes the last of them waits until they all are in the file, which is to be one restart in more
than a hundred."""

LOG_LENGTH = (CHECKPOINT_AFTER + 100) * (PAGE_SIZE + 24)
"""What the log comes to by then, in bytes: every page has a heading."""


def open_sql_store(where: str, *, exclusive: bool, busy_timeout_ms: int) -> SqlStore:
    """The store that an address names; `open_store` has the details."""
    if "://" not in where:
        return _open_sqlite(where, exclusive, busy_timeout_ms)
    try:
        url = make_url(where)
    except ArgumentError as error:
        raise StoreError(f"{where!r} is no address of a store") from error
    match url.get_backend_name():
        case "sqlite" if url.database:
            return _open_sqlite(url.database, exclusive, busy_timeout_ms)
        case "postgresql" | "postgres":
            engine = postgresql_engine(url, lock_timeout_ms=busy_timeout_ms)
            return _open_postgresql(engine, url, exclusive)
        case _:
            shown = url.render_as_string(hide_password=True)
            raise StoreError(f"{shown!r} names neither an SQLite file nor a PostgreSQL database")


def open_to_look(where: str) -> SqlStore:
    """The store that an address names, as it is; `open_past` has the details."""
    engine, name = read_only_engine(where)
    with translated(name), engine.connect() as connection:
        if not migrate.is_current(connection, name):
            way = f"bring it up to date with: rekindle db upgrade {name}"
            raise StoreUnavailableError(f"the store {name} is of an older Rekindle; {way}")
    return SqlStore(engine, engine, name=name)


def _open_sqlite(path: str, exclusive: bool, busy_timeout_ms: int) -> SqlStore:
    # Two names of one file must meet at one lock.
    database = Path(os.path.realpath(path))
    name = str(database)
    prepare(database, _create_sqlite)
    ownership: Ownership = FileOwnership(database) if exclusive else Unowned()
    try:
        writer = sqlite_engine(
            name,
            begin=BEGIN_WRITING,
            pragmas={
                "busy_timeout": busy_timeout_ms,
                "journal_mode": "WAL",
                "synchronous": "FULL",
                "wal_autocheckpoint": CHECKPOINT_AFTER,
            },
        )
        reader = sqlite_engine(
            name, begin="BEGIN", pragmas={"busy_timeout": busy_timeout_ms, "query_only": "ON"}
        )
        with translated(name):
            _check(reader, name)
            migrate.upgrade(writer, name, locked(side_file(database, ".migrating")))
        return SqlStore(
            writer,
            reader,
            name=name,
            address=f"sqlite:///{name}",
            database=database,
            ownership=ownership,
            # Only the supervisor's own is in a hurry.
            when_connected=partial(make_room, side_file(database, "-wal"), LOG_LENGTH) if exclusive else None,
        )
    except BaseException:
        ownership.release()
        raise


def _open_postgresql(engine: Engine, url: URL, exclusive: bool) -> SqlStore:
    name = url.render_as_string(hide_password=True)
    address = url.set(drivername="postgresql").render_as_string(hide_password=False)
    ownership: Ownership = ServerOwnership(engine, name) if exclusive else Unowned()
    try:
        with translated(name):
            migrate.upgrade(engine, name)
    except BaseException:
        ownership.release()
        raise
    return SqlStore(engine, engine, name=name, address=address, ownership=ownership)


def _create_sqlite(path: Path) -> None:
    # Without a write-ahead log: the file is complete in itself before it gets its name.
    # A death touches a few rows in each of a few tables: small pages are quicker to sync by a tenth or two.
    pragmas: dict[str, str | int] = {"page_size": PAGE_SIZE, "synchronous": "FULL"}
    engine = sqlite_engine(str(path), begin=BEGIN_WRITING, pragmas=pragmas)
    with translated(str(path)):
        migrate.upgrade(engine, str(path))


def _check(reader: Engine, name: str) -> None:
    with reader.connect() as connection:
        found = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one()
    if found != "ok":
        # The first line names a page; the headings around it help nobody.
        said = " ".join(found.replace("***", " ").split())
        raise StoreDamagedError(f"the store {name} is damaged: {said}")
