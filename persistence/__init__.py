"""The stores: restart history in SQLite, PostgreSQL or memory.

SQLAlchemy is loaded by `open_store`, not by importing this package.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from .memory_store import MemoryStore

if TYPE_CHECKING:
    from .jobs.job_queue import JobQueue
    from .store import SqlStore

__all__ = ["BUSY_TIMEOUT_MS", "MemoryStore", "open_past", "open_queue", "open_store"]

BUSY_TIMEOUT_MS = 500
"""How long a commit waits for another writer before it fails and is retried later."""

QUEUE_TIMEOUT_MS = 5000
"""The same for programs that enqueue jobs: they compete with the workers for the file."""


def open_store(
    where: str | os.PathLike[str],
    *,
    exclusive: bool = True,
    busy_timeout_ms: int = BUSY_TIMEOUT_MS,
    worker_database: str | None = None,
    spool: str | os.PathLike[str] | None = None,
    lock: int | None = None,
) -> SqlStore:
    """Open a store, create it if it is missing, and bring its tables up to date.

    Args:
        where: the path of an SQLite file, `sqlite:///path`, or `postgresql://…`.
        exclusive: own the store, as its only supervisor, until it is closed.
        busy_timeout_ms: how long a commit waits for another writer.
        worker_database: the address that workers which serve queues are given, of the same database;
            by default this one, with its password.
        spool: the file for records that cannot be written at a stop; beside the file of SQLite unless
            it is given, and none for PostgreSQL.
        lock: what holds the right to it already, because the former program of this process was upgraded:
            the descriptor of an SQLite file's lock, or the number of PostgreSQL's session.

    Raises:
        StoreOwnedError: another supervisor owns it; the message names its pid.
        StoreDamagedError: it is not a database, or a corrupt one. It is left unchanged.
        StoreTooNewError: a newer Rekindle wrote it.
        StoreUnavailableError: it cannot be read or written now.
        StoreError: the address is invalid, or psycopg is missing.
    """
    from .store_opener import open_sql_store

    file = None if spool is None else Path(spool)
    store = open_sql_store(
        os.fspath(where), exclusive=exclusive, busy_timeout_ms=busy_timeout_ms, spool=file, lock=lock
    )
    if worker_database is not None:
        store.address = worker_database
    return store


def open_past(where: str | os.PathLike[str], *, spool: str | os.PathLike[str] | None = None) -> SqlStore:
    """Open a store to read its history: nothing is created, changed or locked.

    Args:
        where: as for `open_store`.
        spool: the file for records that could not be written at a stop, as for `open_store`.

    Raises:
        StoreDamagedError: it is not a database, or a corrupt one.
        StoreTooNewError: a newer Rekindle wrote it.
        StoreUnavailableError: it does not exist, cannot be read now, or is of an older Rekindle.
        StoreError: the address is invalid, or psycopg is missing.
    """
    from .store_opener import open_to_look

    return open_to_look(os.fspath(where), None if spool is None else Path(spool))


def open_queue(where: str | os.PathLike[str], *, busy_timeout_ms: int = QUEUE_TIMEOUT_MS) -> JobQueue:
    """Open the queues of a store for a program that is not a supervisor, such as a web server.

    Raises:
        StoreError: like `open_store`, except that a supervisor may own the store.
    """
    from .store_opener import open_sql_store

    return open_sql_store(os.fspath(where), exclusive=False, busy_timeout_ms=busy_timeout_ms).jobs
