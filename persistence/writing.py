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

from sqlalchemy import Connection, Engine, Executable
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.exc import ResourceClosedError, SQLAlchemyError

from .engines import BEGIN_WRITING

Row = Mapping[str, Any]
Rows = Sequence[Row]


class Writing:
    """A `with` block is a transaction; used by one thread at a time."""

    def __init__(self, engine: Engine, when_connected: Callable[[], None] | None = None) -> None:
        """Transactions of an engine; in the first one of each connection that call is made."""
        self._engine = engine
        self._when_connected = when_connected
        # PostgreSQL's driver begins by itself, with the first statement.
        self._begin = BEGIN_WRITING if engine.dialect.name == "sqlite" else None
        self.errors: tuple[type[Exception], ...] = (SQLAlchemyError, engine.dialect.loaded_dbapi.Error)
        """What the block may raise over the database; the connection is to be dropped then."""
        self._kept: Connection | None = None
        self._driver: Any = None
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
        is_new = self._kept is None
        if is_new:
            self._connect()
        if self._begin is not None:
            self._driver.execute(self._begin)
        if is_new and self._when_connected is not None:
            self._when_connected()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._kept is None:
            raise ResourceClosedError("it was closed meanwhile")
        # Who began it on SQLAlchemy's side must hear there, too, that it is over.
        party = self._kept if self._kept.in_transaction() else self._driver
        if kind is None:
            party.commit()
            return
        with suppress(Exception):  # what is worth telling is why it came to this
            party.rollback()

    def _connect(self) -> None:
        connection = self._engine.connect()
        self._driver = connection.connection.dbapi_connection
        self.cursor = self._driver.cursor()
        self._kept = connection

    @property
    def is_connected(self) -> bool:
        """Whether a connection is kept."""
        return self._kept is not None

    def rescue(self) -> None:
        """Have what is in SQLite's log written to the database while it can be read, and let go."""
        if self._kept is not None:
            with suppress(*self.errors):
                self._driver.execute("PRAGMA wal_checkpoint")
        self.drop()

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
