"""Statements compiled once, for the way of a restart.

A death is committed before its worker starts again, so every microsecond here is a worker's
downtime. SQLAlchemy compiles these statements from the typed tables like all others; what is
spared is looking each one up, and its values, again and again: they go to the driver as they are
(34 µs a statement against 3), and what the driver raises is the driver's own error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import Delete, Dialect, Insert
from sqlalchemy.engine.interfaces import DBAPICursor

Row = Mapping[str, Any]


class Prepared:
    """One statement, ready to be sent."""

    def __init__(
        self, statement: Insert | Delete, dialect: Dialect, columns: Sequence[str] | None = None
    ) -> None:
        compiled = statement.compile(dialect=dialect, column_keys=None if columns is None else list(columns))
        self._text = str(compiled)
        # A plain number; what is to come is a symbol.
        fixed = {name: value for name, value in compiled.params.items() if type(value) is int}
        self._arranged = _arrangement(compiled.positiontup, fixed)

    def run(self, cursor: DBAPICursor, row: Row) -> int:
        """Send it for one row; how many rows of the table it touched."""
        cursor.execute(self._text, self._arranged(row))
        return cursor.rowcount

    def run_all(self, cursor: DBAPICursor, rows: Sequence[Row]) -> None:
        """Send it for every row."""
        if rows:
            cursor.executemany(self._text, [self._arranged(row) for row in rows])


def _arrangement(names: list[str] | None, fixed: Row) -> Callable[[Row], Any]:
    """What puts a row's values into the form that the driver takes: by position, or by name."""
    in_order = None if names is None else itemgetter(*names)
    if not fixed:
        return in_order or dict
    if in_order is None:
        return lambda row: {**fixed, **row}
    return lambda row: in_order({**fixed, **row})
