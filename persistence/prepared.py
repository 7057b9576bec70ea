"""Statements compiled once, for the way of a restart.

A death is committed before its worker starts again, so every microsecond here is a worker's
downtime. SQLAlchemy compiles these statements from the typed tables like all others; what is
spared is looking each one up, and its values, again and again (34 µs a statement against 9).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Dialect, Insert

Row = Mapping[str, Any]


class Prepared:
    """One statement, ready to be sent."""

    def __init__(self, statement: Insert, dialect: Dialect, columns: Sequence[str] | None = None) -> None:
        compiled = statement.compile(dialect=dialect, column_keys=None if columns is None else list(columns))
        self._text = str(compiled)
        self._names: list[str] | None = compiled.positiontup
        self._fixed = {name: value for name, value in compiled.params.items() if value is not None}

    def run(self, connection: Connection, row: Row) -> int:
        """Send it for one row; how many rows of the table it touched."""
        return connection.exec_driver_sql(self._text, self._arranged(row)).rowcount

    def run_all(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Send it for every row."""
        if len(rows) == 1:
            self.run(connection, rows[0])
        elif rows:
            connection.exec_driver_sql(self._text, [self._arranged(row) for row in rows])

    def _arranged(self, row: Row) -> Any:
        """The values in the form that the driver takes: by position, or by name."""
        values = {**self._fixed, **row}
        return values if self._names is None else tuple([values[name] for name in self._names])
