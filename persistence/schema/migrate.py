"""Upgrades the tables, once, however many supervisors start at the same moment.

alembic costs time and memory, so it is loaded only if there is something to do: the revision of the
database is first compared with those listed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager as Context
from contextlib import contextmanager, nullcontext
from importlib.resources import files
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, inspect, text

from rekindle.actors.errors import StoreTooNewError

if TYPE_CHECKING:
    from alembic.config import Config

VERSION_TABLE = "rekindle_alembic_version"
REVISIONS = tuple(f"{number:04}" for number in range(1, 28))
"""Every revision, oldest first; a test keeps this equal to what `migrations/versions` holds."""

COMPATIBLE_FROM = "0024"
"""The oldest revision whose code can continue as a node of a cluster with the tables of the newest one.

A revision that only adds tables, and columns that may be left out, leaves this as it is."""

_LOCK_KEY = 0x52656B69_6D696772  # "Rekimigr"


def upgrade(engine: Engine, name: str, lock: Context[None] | None = None) -> None:
    """Bring the database up to the newest revision.

    Args:
        engine: one whose transactions cover table changes.
        name: what the database is called in an error.
        lock: keeps other processes from upgrading at the same time; PostgreSQL needs none.

    Raises:
        StoreTooNewError: a newer Rekindle wrote the database.
    """
    # SQLite's writers wait for each other only for a moment, so another process that upgrades is waited for
    # by the lock before anything else.
    with lock or nullcontext():
        with engine.connect() as connection:
            if is_current(connection, name):
                return
        with _exclusive_transaction(engine) as connection:
            # Another process may have upgraded it meanwhile.
            if not is_current(connection, name):
                from alembic import command

                command.upgrade(alembic_config(connection), "head")


def downgrade(engine: Engine, revision: str = "base") -> None:
    """Downgrade the tables to an older revision; the data of newer tables and columns is lost."""
    from alembic import command

    with _exclusive_transaction(engine) as connection:
        command.downgrade(alembic_config(connection), revision)


def alembic_config(connection: Connection) -> Config:
    """An alembic configuration for our migrations, wherever they are installed, on this connection."""
    from alembic.config import Config

    config = Config()
    # A percent sign in a path would start an interpolation.
    config.set_main_option("script_location", str(files("rekindle.migrations")).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def is_current(connection: Connection, name: str) -> bool:
    """Whether the tables are those of the newest revision.

    Raises:
        StoreTooNewError: a newer Rekindle wrote the database.
    """
    found = revision_of(connection)
    if found is not None and found not in REVISIONS:
        raise StoreTooNewError(
            f"the store {name} was written by a newer Rekindle "
            f"(its revision is {found}, the latest known here is {REVISIONS[-1]})"
        )
    return found == REVISIONS[-1]


def revision_of(connection: Connection) -> str | None:
    """The revision of a store; None if Rekindle has never used the database."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found = connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}"))
    return None if found is None else str(found)


@contextmanager
def _exclusive_transaction(engine: Engine) -> Iterator[Connection]:
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SET LOCAL lock_timeout = '60s'"))
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK_KEY})
        yield connection
