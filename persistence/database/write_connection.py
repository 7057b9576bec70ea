"""The one connection that is kept open for writing, and its transactions.

SQLAlchemy makes the connection and all statements. The driver begins and ends the transaction:
SQLAlchemy's own bookkeeping takes 0.1 of the 0.6 ms that a worker's restart waits for the commit of its
death, and those statements need none of it. Statements through SQLAlchemy's connection join the same
transaction. If a listener of SQLAlchemy's events or its log wants to see statements, all of them go through
that connection.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

from loguru import logger
from sqlalchemy import Connection, Engine, Executable
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.exc import ResourceClosedError, SQLAlchemyError

from .database_file import SameFile
from .engines import BEGIN_WRITING

Row = Mapping[str, Any]
Rows = Sequence[Row]


class Writing:
    """A `with` block is a transaction; used by one thread at a time."""

    def __init__(
        self, engine: Engine, file: SameFile | None = None, when_connected: Callable[[], None] | None = None
    ) -> None:
        """Transactions of an engine; `when_connected` runs within the first one of each connection."""
        self._engine = engine
        self._file = file
        self._when_connected = when_connected
        # PostgreSQL's driver begins the transaction at the first statement.
        self._begin = BEGIN_WRITING if engine.dialect.name == "sqlite" else None
        self.errors: tuple[type[Exception], ...] = (SQLAlchemyError, engine.dialect.loaded_dbapi.Error)
        """The database errors that the block may raise; the caller must then drop the connection."""
        self._kept: Connection | None = None
        self._driver: Any = None
        self._has_warned = False
        self.cursor: DBAPICursor
        """The driver's own, for compiled statements."""
        self.observed: Connection | None = None
        """The connection for compiled statements, too, while something observes SQLAlchemy's statements."""

    @property
    def connection(self) -> Connection:
        """SQLAlchemy's, for every other statement, within the same transaction."""
        assert self._kept is not None
        return self._kept

    def execute(self, statement: Executable, rows: Rows | Row | None = None) -> None:
        """Run a statement through SQLAlchemy, once per row if there are rows."""
        self.connection.execute(statement, rows)

    def __enter__(self) -> None:
        if self._file is not None:
            self._file.confirm()
        is_new = self._kept is None
        if is_new:
            self._connect()
        self.observed = self._kept if _is_observed(self._engine) else None
        if self._begin is not None:
            self._driver.execute(self._begin)
        if is_new:
            self._begin_with_file()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._kept is None:
            raise ResourceClosedError("the connection was closed during the transaction")
        # If SQLAlchemy joined the transaction, it must be the one that ends it.
        party = self._kept if self._kept.in_transaction() else self._driver
        if kind is None:
            party.commit()
            self._see_to_log()
            return
        with suppress(Exception):  # the error that led here matters more
            party.rollback()

    def _connect(self) -> None:
        connection = self._engine.connect()
        self._driver = connection.connection.dbapi_connection
        self.cursor = self._driver.cursor()
        self._kept = connection

    def _begin_with_file(self) -> None:
        if self._when_connected is not None:
            self._when_connected()
        if self._file is not None:
            self._file.learn_log()
            self._has_warned = False

    def _see_to_log(self) -> None:
        """Checkpoint after each commit if the log was removed: else the commits would be lost with it.

        The connection stays open: it is the only access to what other processes wrote to the same log.
        """
        if self._file is None or not self._file.has_lost_log:
            return
        if not self._has_warned:
            self._has_warned = True
            logger.warning("store: {} was removed while in use; restart all its users", self._file.log_name)
        with suppress(*self.errors):
            self._driver.execute("PRAGMA wal_checkpoint").fetchall()

    def drop(self) -> None:
        """Close the connection; the next transaction opens another."""
        kept, self._kept, self._driver = self._kept, None, None
        if kept is None:
            return
        with suppress(*self.errors):
            self.cursor.close()  # SQLite keeps its files open until every statement is closed
        # It may be broken, so nothing more is sent to it.
        kept.invalidate()
        kept.close()


_log = logging.getLogger("sqlalchemy.engine.Engine")


def _is_observed(engine: Engine) -> bool:
    """Whether a listener or SQLAlchemy's log is to see every statement."""
    events = engine.dispatch
    return bool(
        events.before_cursor_execute
        or events.after_cursor_execute
        or events.before_execute
        or events.after_execute
        or _log.isEnabledFor(logging.INFO)
    )
