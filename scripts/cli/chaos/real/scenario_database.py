"""The database of a real run, which the scenario reads directly and locks with a real lock."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rekindle.actors.simulation.scenarios.moves import DatabaseState

from .empty_database import empty_database

_PATIENCE_S = 10.0

AWAY = "database_away"
"""A file that exists while the database is unavailable; workers that need the database check it."""


class ScenarioDatabase:
    """The database file of the supervisors of a run."""

    def __init__(self, path: Path, folder: Path) -> None:
        self._path = path
        self._away = folder / AWAY
        self._locks = ExitStack()
        shutil.copyfile(empty_database(), path)

    def become(self, state: DatabaseState) -> DatabaseState:
        """Apply the state as far as possible from outside; return the state that the supervisor simulates."""
        self.unlock()
        if state in (DatabaseState.LOCKED, DatabaseState.GONE, DatabaseState.FULL):
            self._away.touch()
        else:
            self._away.unlink(missing_ok=True)
        if state is not DatabaseState.LOCKED:
            return state
        connection = sqlite3.connect(self._path, timeout=_PATIENCE_S, isolation_level=None)
        self._locks.callback(connection.close)
        connection.execute("BEGIN IMMEDIATE")
        return DatabaseState.BACK

    def unlock(self) -> None:
        """Release the lock."""
        self._locks.close()

    def deaths(self) -> list[Any]:
        """Every stored death: worker, generation, action, wall-clock time."""
        return self._rows("SELECT component_id, generation, action, died_at_wall_ms FROM rekindle_death")

    def counts(self) -> list[Any]:
        """The counters of each worker: restarts, streak, and when it failed."""
        return self._rows(
            "SELECT component_id, restart_count, streak_count, failed_at_wall_ms"
            " FROM rekindle_worker_restart_policy"
        )

    def _rows(self, statement: str) -> list[Any]:
        connection = sqlite3.connect(f"file:{self._path}?mode=ro", uri=True, timeout=_PATIENCE_S)
        try:
            return connection.execute(statement).fetchall()
        finally:
            connection.close()
