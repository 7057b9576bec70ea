"""Translates the errors of database drivers into Rekindle's: one sentence, no SQL, no password."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from rekindle.actors.errors import StoreDamagedError, StoreError, StoreUnavailableError

_DAMAGED_SQLITE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}
_DAMAGED_POSTGRESQL = {"XX001", "XX002"}  # data_corrupted, index_corrupted
_NO_PERMISSION = "42501"

_DATABASE_ERRORS = (SQLAlchemyError, sqlite3.Error)
"""The driver's own too: it begins the transactions of SQLite, not SQLAlchemy."""


@contextmanager
def translated(name: str) -> Iterator[None]:
    """Let no exception of SQLAlchemy or of SQLite's driver out of the block.

    Raises:
        StoreUnavailableError: locked, full, read-only or unreachable; a retry may help.
        StoreDamagedError: corrupt, or with tables that do not match.
    """
    try:
        yield
    except _DATABASE_ERRORS as error:
        raise failure(name, error) from error


def failure(name: str, error: Exception) -> StoreError:
    """The error to raise instead of one of SQLAlchemy or of the driver."""
    orig = (error.orig if isinstance(error, DBAPIError) else None) or error
    # PostgreSQL's messages continue with hints and positions; the first line names the problem.
    text = str(orig).strip().partition("\n")[0].rstrip(":. \t") or type(orig).__name__
    if _is_damage(orig):
        return StoreDamagedError(f"the store {name} is damaged: {text}")
    return StoreUnavailableError(f"the store {name} is unavailable: {text}")


def _is_damage(orig: BaseException) -> bool:
    if isinstance(orig, sqlite3.Error):
        code = getattr(orig, "sqlite_errorcode", 0) & 0xFF
        # The bare SQLITE_ERROR: the statement does not fit the tables, for example because one is missing.
        return code in _DAMAGED_SQLITE or code == sqlite3.SQLITE_ERROR
    state = getattr(orig, "sqlstate", None) or ""
    misfit = state.startswith("42") and state != _NO_PERMISSION
    return state in _DAMAGED_POSTGRESQL or misfit
