"""Engines for the two databases: how a connection is set up, and how a transaction begins.

Engines do not pool: every connection is new, and its user decides how long to keep it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import NullPool

from rekindle.actors.errors import StoreError, StoreUnavailableError
from rekindle.actors.views.redaction import without_password
from rekindle.worker.jobs.database_files import LOG_LOST, is_log_lost, uri_escaped
from rekindle.worker.jobs.relayed.wire import SCHEME as THROUGH_SUPERVISOR

from .database_file import check_place

BEGIN_WRITING = "BEGIN IMMEDIATE"
"""How SQLite's writers begin: a deferred transaction that reads first fails at once at its first write if
another one wrote meanwhile."""


def path_or_url(where: str) -> str | URL:
    """The path of an SQLite file, or the URL of a PostgreSQL database.

    Raises:
        StoreError: the address is invalid.
    """
    if "://" not in where:
        return where
    if where.startswith(f"{THROUGH_SUPERVISOR}://"):  # not shown: its token is a secret of the worker
        raise StoreError(
            "the jobs of this worker go through its supervisor, which keeps the address of the database:"
            " add jobs with self.enqueue of the JobWorker"
        )
    try:
        url = make_url(where)
    except (ArgumentError, ValueError):  # ValueError: a port that is not a number, an open bracket
        # Without its text, which may contain the password.
        raise StoreError(f"{without_password(where)!r} is not the address of a store") from None
    match url.get_backend_name():
        case "sqlite" if url.database:
            return url.database
        case "postgresql" | "postgres" if _is_server(url):
            return url
        case "postgresql" | "postgres":
            raise StoreError(f"{shown_url(url)!r} is not the address of a server")
        case _:
            raise StoreError(f"{shown_url(url)!r} names neither an SQLite file nor a PostgreSQL database")


def _is_server(url: URL) -> bool:
    """Whether a server can be at this host and port."""
    return (url.port is None or 0 < url.port < 65536) and set("[] ").isdisjoint(url.host or "")


def shown_url(url: URL) -> str:
    """A URL for people: without its password, which may also stand in the query (`?password=`)."""
    return without_password(url.render_as_string(hide_password=True))


def sqlite_engine(path: str, *, begin: str, pragmas: dict[str, str | int]) -> Engine:
    """An engine on a database file that exists.

    Args:
        path: the file; it is never created.
        begin: the statement that begins a transaction.
        pragmas: the settings of each connection, in this order.

    Connecting raises StoreUnavailableError while the connection would damage the database.
    """
    url = URL.create("sqlite", database=f"file:{uri_escaped(path)}", query={"mode": "rw", "uri": "true"})
    # isolation_level None keeps the driver from beginning transactions of its own.
    connect_args = {"isolation_level": None, "check_same_thread": False, "timeout": 0}
    engine = create_engine(url, poolclass=NullPool, connect_args=connect_args)

    def confirm_log(*_: object) -> None:
        if is_log_lost(path):
            raise StoreUnavailableError(f"the store {path} is unavailable: {LOG_LOST}")

    def set_up(connection: DBAPIConnection, _record: object) -> None:
        cursor = connection.cursor()
        for name, value in pragmas.items():
            cursor.execute(f"PRAGMA {name}={value}")
        cursor.close()

    def begin_transaction(connection: Connection) -> None:
        # By the driver, in a fifth of the time; every death waits for it.
        driver: Any = connection.connection.dbapi_connection
        if not driver.in_transaction:  # the store has begun it already
            driver.execute(begin)

    event.listen(engine, "do_connect", confirm_log)
    event.listen(engine, "connect", set_up)
    event.listen(engine, "begin", begin_transaction)
    return engine


def postgresql_engine(url: URL, *, lock_timeout_ms: int) -> Engine:
    """An engine on a PostgreSQL server, reached with psycopg.

    A lost server is noticed within seconds, not after the kernel's 15 minutes; settings in the URL
    take precedence.

    Raises:
        StoreError: psycopg is not installed.
    """
    _require_psycopg()
    patience: dict[str, Any] = {"connect_timeout": 3, "tcp_user_timeout": 5000}
    engine = create_engine(
        url.set(drivername="postgresql+psycopg"),
        poolclass=NullPool,
        connect_args={name: value for name, value in patience.items() if name not in url.query},
    )

    def set_up(connection: Any, _record: object) -> None:
        connection.autocommit = True
        connection.execute(f"SET lock_timeout = {int(lock_timeout_ms)}")
        connection.autocommit = False

    event.listen(engine, "connect", set_up)
    return engine


def check_address(where: str) -> None:
    """Refuse an address that cannot be opened on this machine, without opening it.

    Raises:
        StoreError: the address is invalid, psycopg is not installed, or the place of the file is not safe.
    """
    found = path_or_url(where)
    if isinstance(found, URL):
        _require_psycopg()
    else:
        check_place(Path(found))


def _require_psycopg() -> None:
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise StoreError(
            "a PostgreSQL store needs psycopg, which is not installed: "
            "pip install 'rekindle-supervisor[postgres]'"
        ) from error
