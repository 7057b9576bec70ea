"""The one connection that is kept for writing, and its transactions.

SQLAlchemy makes the connection and all statements. The transaction itself is begun and ended by
the driver: SQLAlchemy's own bookkeeping takes 0.1 ms (of the 0.6 for which a worker is down so that
its death be written), and the statements of that moment need none of it. Whatever goes through
SQLAlchemy's connection joins the same transaction.
"""

from __future__ import annotations

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
        """Transactions of an engine; in the first one of each connection that call is made."""
        self._engine = engine
        self._file = file
        self._when_connected = when_connected
        # PostgreSQL's driver begins by itself, with the first statement.
        self._begin = BEGIN_WRITING if engine.dialect.name == "sqlite" else None
        self.errors: tuple[type[Exception], ...] = (SQLAlchemyError, engine.dialect.loaded_dbapi.Error)
        """What the block may raise over the database; the connection is to be dropped then."""
        self._kept: Connection | None = None
        self._driver: Any = None
        self._has_warned = False
        self.cursor: DBAPICursor
        """The driver's own, for what is sent as it is."""

    @property
    def connection(self) -> Connection:
        """SQLAlchemy's, for every other statement, within the same transaction."""
        assert self._kept is not None
        return self._kept

    def execute(self, statement: Executable, rows: Rows | Row | None = None) -> None:
        """Run one of those statements, for every row if there are rows."""
        self.connection.execute(statement, rows)

    def __enter__(self) -> None:
        if self._file is not None:
            self._file.confirm()
        is_new = self._kept is None
        if is_new:
            self._connect()
        if self._begin is not None:
            self._driver.execute(self._begin)
        if is_new:
            self._begin_with_file()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._kept is None:
            raise ResourceClosedError("it was closed meanwhile")
        # Who began it on SQLAlchemy's side must hear there, too, that it is over.
        party = self._kept if self._kept.in_transaction() else self._driver
        if kind is None:
            party.commit()
            self._see_to_log()
            return
        with suppress(Exception):  # what is worth telling is why it came to this
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
        """Have what was committed in the database itself, if it would go with a log that was removed.

        The connection stays: it is the only way to what the others wrote who have the same log.
        """
        if self._file is None or not self._file.has_lost_log:
            return
        if not self._has_warned:
            self._has_warned = True
            logger.warning("{} was removed while it is in use; restart all who use it", self._file.log_name)
        with suppress(*self.errors):
            self._driver.execute("PRAGMA wal_checkpoint").fetchall()

    def drop(self) -> None:
        """Let go of the connection; the next transaction opens another."""
        kept, self._kept, self._driver = self._kept, None, None
        if kept is None:
            return
        with suppress(*self.errors):
            self.cursor.close()  # SQLite keeps its files open for as long as a statement is
        # It may be broken: nothing is to be said to it any more.
        kept.invalidate()
        kept.close()
