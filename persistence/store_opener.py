"""Opens a store by path or address: checked, upgraded and owned."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from sqlalchemy import URL, Engine

from rekindle.actors.errors import StoreDamagedError, StoreUnavailableError

from .database.database_file import check_place, locked, prepare, side_file
from .database.driver_errors import translated
from .database.engines import BEGIN_WRITING, path_or_url, postgresql_engine, shown_url, sqlite_engine
from .database.ownership import FileOwnership, Ownership, ServerOwnership, Unowned
from .database.read_only_engine import read_only_engine
from .database.wal_preallocation import make_room
from .new_database import create_tables
from .schema import migrate
from .store import SqlStore

PAGE_SIZE = 1024

CHECKPOINT_AFTER = 4000
"""How many pages the log holds before a checkpoint: SQLite's default of 4 MB, with pages a quarter of its
default size. The writer of the last one waits for the checkpoint, which should be fewer than one restart
in a hundred."""

LOG_LENGTH = (CHECKPOINT_AFTER + 100) * (PAGE_SIZE + 24)
"""The length of the log by then, in bytes: every page has a header."""


def open_sql_store(
    where: str,
    *,
    exclusive: bool,
    busy_timeout_ms: int,
    spool: Path | None = None,
    lock: int | None = None,
) -> SqlStore:
    """Open the store at this address; see `open_store`."""
    found = path_or_url(where)
    if isinstance(found, str):
        return _open_sqlite(found, exclusive, busy_timeout_ms, spool, lock)
    engine = postgresql_engine(found, lock_timeout_ms=busy_timeout_ms)
    return _open_postgresql(engine, found, exclusive, spool, lock)


def open_to_look(where: str, spool: Path | None = None) -> SqlStore:
    """Open the store at this address read-only; see `open_past`."""
    engine, name = read_only_engine(where)
    with translated(name), engine.connect() as connection:
        if not migrate.is_current(connection, name):
            way = f"bring it up to date with: rekindle db upgrade {name}"
            raise StoreUnavailableError(f"the store {name} is of an older Rekindle; {way}")
    beside = None if engine.dialect.name == "postgresql" else side_file(Path(name), ".unsaved")
    return SqlStore(engine, engine, name=name, spool=spool or beside)


def _open_sqlite(
    path: str, exclusive: bool, busy_timeout_ms: int, spool: Path | None, lock: int | None = None
) -> SqlStore:
    check_place(Path(path))
    # Two names of one file must lead to one lock.
    database = Path(os.path.realpath(path))
    name = str(database)
    if lock is not None and not database.exists():  # a new one would not know what runs
        raise StoreUnavailableError(f"the store {name} is missing")
    prepare(database, _create_sqlite)
    ownership: Ownership = FileOwnership(database, lock) if exclusive else Unowned()
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
            if not _check(reader, name, is_in_use=lock is not None):
                migrate.upgrade(writer, name, locked(side_file(database, ".migrating")))
        return SqlStore(
            writer,
            reader,
            name=name,
            address=f"sqlite:///{name}",
            database=database,
            ownership=ownership,
            spool=(spool or side_file(database, ".unsaved")) if exclusive else None,
            # Only the supervisor's commits are urgent.
            when_connected=partial(make_room, side_file(database, "-wal"), LOG_LENGTH) if exclusive else None,
        )
    except BaseException:
        if lock is None:  # else it is not ours to release: workers run, and it is tried again
            ownership.release()
        raise


def _open_postgresql(
    engine: Engine, url: URL, exclusive: bool, spool: Path | None, former: int | None = None
) -> SqlStore:
    name = shown_url(url)
    address = url.set(drivername="postgresql").render_as_string(hide_password=False)
    ownership: Ownership = ServerOwnership(engine, name, former) if exclusive else Unowned()
    try:
        with translated(name):
            migrate.upgrade(engine, name)
    except BaseException:
        ownership.release()
        raise
    kept = spool if exclusive else None
    return SqlStore(engine, engine, name=name, address=address, ownership=ownership, spool=kept)


def _create_sqlite(path: Path) -> None:
    # Without a write-ahead log: the file must be complete before it gets its name.
    # A death changes a few rows in a few tables: small pages sync 10 to 20 % faster.
    pragmas: dict[str, str | int] = {"page_size": PAGE_SIZE, "synchronous": "FULL"}
    engine = sqlite_engine(str(path), begin=BEGIN_WRITING, pragmas=pragmas)
    with translated(str(path)):
        with engine.begin() as connection:
            create_tables(connection)
        migrate.upgrade(engine, str(path))


def _check(reader: Engine, name: str, *, is_in_use: bool) -> bool:
    """Whether the file is set up and up to date; read only, so that no other writer is in the way.

    A file that the former program of this process used a moment ago is not searched for damage: that takes
    seconds for a large one, and no worker is watched meanwhile.
    """
    with reader.connect() as connection:
        found = "ok" if is_in_use else connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one()
        has_log = connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
        is_current = found == "ok" and has_log and migrate.is_current(connection, name)
    if found != "ok":
        # Without the decoration around the first line, which names a page.
        problem = " ".join(found.replace("***", " ").split())
        raise StoreDamagedError(f"the store {name} is damaged: {problem}")
    return is_current
