"""Read-only engines: nothing is created, migrated or locked, so a supervisor may use the store meanwhile."""

from __future__ import annotations

import os
from pathlib import Path

from sqlalchemy import Engine

from rekindle.actors.errors import StoreDamagedError, StoreUnavailableError

from .database_file import prepare
from .engines import path_or_url, postgresql_engine, shown_url, sqlite_engine

_PATIENCE_MS = 2000


def read_only_engine(where: str) -> tuple[Engine, str]:
    """An engine on an existing store, and the store's name without its password.

    Raises:
        StoreDamagedError: it is not a database.
        StoreUnavailableError: it does not exist.
        StoreError: the address is invalid.
    """
    found = path_or_url(where)
    if isinstance(found, str):
        return _sqlite(found)
    engine = postgresql_engine(found, lock_timeout_ms=_PATIENCE_MS)
    return engine, shown_url(found)


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
    raise StoreUnavailableError(f"the store {database} was removed just now")
