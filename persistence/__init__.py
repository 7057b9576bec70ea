"""What is remembered: restart history in SQLite, PostgreSQL, or memory.

SQLAlchemy is loaded by `open_store`, not by importing this package.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .memory_store import MemoryStore

if TYPE_CHECKING:
    from .jobs.job_queue import JobQueue
    from .store import SqlStore

__all__ = ["BUSY_TIMEOUT_MS", "MemoryStore", "open_past", "open_queue", "open_store"]

BUSY_TIMEOUT_MS = 500
"""How long a commit waits for another writer before it is given up, to be tried again."""

QUEUE_TIMEOUT_MS = 5000
"""The same for those who put jobs into queues: workers take turns at the same file."""


def open_store(
    where: str | os.PathLike[str], *, exclusive: bool = True, busy_timeout_ms: int = BUSY_TIMEOUT_MS
) -> SqlStore:
    """Open a store, create it if it is missing, and bring its tables up to date.

    Args:
        where: the path of an SQLite file, `sqlite:///path`, or `postgresql://…`.
        exclusive: be its only supervisor until it is closed.
        busy_timeout_ms: how long a commit waits for another writer.

    Raises:
        StoreOwnedError: another supervisor has it; the text names its pid.
        StoreDamagedError: it is not a database, or a broken one. It is left as it is.
        StoreTooNewError: a newer Rekindle wrote it.
        StoreUnavailableError: it cannot be read or written now.
        StoreError: the address makes no sense, or psycopg is missing.
    """
    from .store_opener import open_sql_store

    return open_sql_store(os.fspath(where), exclusive=exclusive, busy_timeout_ms=busy_timeout_ms)


def open_past(where: str | os.PathLike[str]) -> SqlStore:
    """Open a store to look at what it remembers: nothing is created, changed or locked.

    Raises:
        StoreDamagedError: it is not a database, or a broken one.
        StoreTooNewError: a newer Rekindle wrote it.
        StoreUnavailableError: it is not there, cannot be read now, or is of an older Rekindle.
        StoreError: the address makes no sense, or psycopg is missing.
    """
    from .store_opener import open_to_look

    return open_to_look(os.fspath(where))


def open_queue(where: str | os.PathLike[str], *, busy_timeout_ms: int = QUEUE_TIMEOUT_MS) -> JobQueue:
    """Open the queues of a store, for a program that is no supervisor: a web server that enqueues, say.

    Raises:
        StoreError: as `open_store` does, save that a supervisor may be at work there.
    """
    from .store_opener import open_sql_store

    return open_sql_store(os.fspath(where), exclusive=False, busy_timeout_ms=busy_timeout_ms).jobs
