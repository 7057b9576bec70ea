"""Translates the errors of database drivers into Rekindle's: one sentence, no SQL, no password."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, SQLAlchemyError, StatementError

from rekindle.actors.errors import RecordRefusedError, StoreDamagedError, StoreError, StoreUnavailableError

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
    orig, text = _original(error)
    if _is_damage(orig):
        return StoreDamagedError(f"the store {name} is damaged: {text}")
    return StoreUnavailableError(f"the store {name} is unavailable: {text}")


def commit_failure(name: str, error: Exception) -> StoreError:
    """The same for an error while records were written: one of them may be to blame."""
    orig, text = _original(error)
    if _is_about_values(error, orig):
        return RecordRefusedError(f"the store {name} cannot write a record: {text}")
    return failure(name, error)


def _original(error: Exception) -> tuple[BaseException, str]:
    """The driver's own error and its first line: PostgreSQL's messages continue with hints and positions."""
    orig = (error.orig if isinstance(error, DBAPIError) else None) or error
    return orig, str(orig).strip().partition("\n")[0].rstrip(":. \t") or type(orig).__name__


def _is_about_values(error: Exception, orig: BaseException) -> bool:
    """Whether the database or its driver refuses a value: any other record could be written."""
    if isinstance(error, StatementError) and not isinstance(error, DBAPIError):
        return True  # SQLAlchemy could not encode a value
    if isinstance(orig, sqlite3.Error):
        return isinstance(orig, sqlite3.IntegrityError | sqlite3.DataError | sqlite3.InterfaceError) or (
            isinstance(orig, sqlite3.ProgrammingError) and "binding parameter" in str(orig)
        )
    state = getattr(orig, "sqlstate", None) or ""
    # data_exception and integrity_constraint_violation; the driver itself reports no state.
    return state.startswith(("22", "23")) or "cannot adapt type" in str(orig)


def _is_damage(orig: BaseException) -> bool:
    if isinstance(orig, sqlite3.Error):
        code = getattr(orig, "sqlite_errorcode", 0) & 0xFF
        # The bare SQLITE_ERROR: the statement does not fit the tables, for example because one is missing.
        return code in _DAMAGED_SQLITE or code == sqlite3.SQLITE_ERROR
    state = getattr(orig, "sqlstate", None) or ""
    misfit = state.startswith("42") and state != _NO_PERMISSION
    return state in _DAMAGED_POSTGRESQL or misfit
