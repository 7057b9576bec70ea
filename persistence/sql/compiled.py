"""The statements that a restart waits for, compiled once.

A death is committed before its worker starts again, so every microsecond here is downtime.
SQLAlchemy compiles these statements from the typed tables like all others. They skip its lookup
and value processing at each execution (34 µs a statement against 3): values go to the driver as
they are, and an error is the driver's own. SQLAlchemy's events do not see what goes to the driver, so
while something listens to them, the same statements are executed by SQLAlchemy's connection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Delete, Dialect, Insert
from sqlalchemy.engine.interfaces import DBAPICursor

from rekindle.actors.deaths.death import Action

from . import statements as sql
from .death_rows import DEATH_COLUMNS
from .encoding import BUNDLE_COLUMNS, EVENT_COLUMNS

Row = Mapping[str, Any]


class CompiledStatement:
    """One statement, ready for the driver."""

    def __init__(
        self, statement: Insert | Delete, dialect: Dialect, columns: Sequence[str] | None = None
    ) -> None:
        compiled = statement.compile(dialect=dialect, column_keys=None if columns is None else list(columns))
        self._text = str(compiled)
        # An integer is a constant; a bound parameter is a symbol.
        fixed = {name: value for name, value in compiled.params.items() if type(value) is int}
        self._arranged = _arrangement(compiled.positiontup, fixed)

    def run(self, cursor: DBAPICursor, row: Row, observed: Connection | None = None) -> int:
        """Execute it for one row; return how many rows of the table it changed."""
        if observed is not None:
            return observed.exec_driver_sql(self._text, self._arranged(row)).rowcount
        cursor.execute(self._text, self._arranged(row))
        return cursor.rowcount

    def run_all(self, cursor: DBAPICursor, rows: Sequence[Row], observed: Connection | None = None) -> None:
        """Execute it for every row."""
        if rows and observed is not None:
            observed.exec_driver_sql(self._text, [self._arranged(row) for row in rows])
        elif rows:
            cursor.executemany(self._text, [self._arranged(row) for row in rows])


def _arrangement(names: list[str] | None, fixed: Row) -> Callable[[Row], Any]:
    """Return a function that arranges a row's values as the driver expects them: by position or by name."""
    in_order = None if names is None else itemgetter(*names)
    if not fixed:
        return in_order or dict
    if in_order is None:
        return lambda row: {**fixed, **row}
    return lambda row: in_order({**fixed, **row})


class DeathStatements:
    """What is written at every death: the row, its counter, its evidence and its events."""

    def __init__(self, upserts: sql.Upserts, dialect: Dialect) -> None:
        self.add_death = CompiledStatement(upserts.add_death, dialect, DEATH_COLUMNS)
        self.add_event = CompiledStatement(upserts.add_event, dialect, EVENT_COLUMNS)
        self.keep_bundle = CompiledStatement(upserts.keep_bundle, dialect, BUNDLE_COLUMNS)
        self.prune_bundles = CompiledStatement(sql.PRUNE_BUNDLES, dialect)
        self.count = {
            Action.RESTART: CompiledStatement(upserts.count_restart, dialect),
            Action.MARK_FAILED: CompiledStatement(upserts.mark_failed, dialect),
        }
