"""The database of a real run, which the scenario reads directly, locks, moves away, fills and slows down."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from rekindle.actors.simulation import Step
from rekindle.actors.simulation.scenarios.moves import DatabaseState

from .empty_database import empty_database

_PATIENCE_S = 10.0

AWAY = "database_away"
"""A file that exists while the database is unavailable; workers that need the database check it."""

DISK_SIZE = "16m"
"""Of the file system that is filled: too small for SQLite's log to be extended in advance."""

FREE_S = 0.1
"""How long a slow database is free between two turns: SQLite looks this often for a lock to end."""


class ScenarioDatabase:
    """The database file of the supervisors of a run: `DISK/database/rekindle.db`."""

    def __init__(self, path: Path, folder: Path, steps: tuple[Step, ...]) -> None:
        """Create the database.

        Args:
            path: its file; the folder of the file is moved away with it, and the folder above is its disk.
            folder: the folder of the run.
            steps: the moves of the run; a disk that is filled is mounted beforehand.
        """
        self._path = path
        self._moved = path.parent.with_name("moved")
        self._away = folder / AWAY
        self._fault = ExitStack()
        self._disk = ExitStack()
        disk = path.parent.parent
        disk.mkdir()
        is_filled = any(getattr(step.move, "state", None) is DatabaseState.FULL for step in steps)
        self._has_own_disk = is_filled and self._mount(disk)
        path.parent.mkdir()
        shutil.copyfile(empty_database(), path)

    def become(self, state: DatabaseState, takes_s: float) -> DatabaseState:
        """Cause the state from outside if possible; return the state that the supervisor simulates."""
        self._fault.close()
        if state in (DatabaseState.LOCKED, DatabaseState.GONE, DatabaseState.FULL):
            self._away.touch()
        else:
            self._away.unlink(missing_ok=True)
        match state:
            case DatabaseState.LOCKED:
                connection = self._connected()
                self._fault.callback(connection.close)
                connection.execute("BEGIN IMMEDIATE")
            case DatabaseState.GONE:
                self._path.parent.rename(self._moved)
                self._fault.callback(self._moved.rename, self._path.parent)
            case DatabaseState.FULL:
                if not self._has_own_disk:
                    return state
                self._fill()
            case DatabaseState.SLOW:
                self._in_background(lambda over: self._hold_in_turns(takes_s, over))
            case DatabaseState.BACK:
                pass
        return DatabaseState.BACK

    def close(self) -> None:
        """End every fault, and give the disk back."""
        self._fault.close()
        self._disk.close()

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
        folder = self._path.parent if self._path.exists() else self._moved
        where = f"file:{folder / self._path.name}?mode=ro"
        connection = sqlite3.connect(where, uri=True, timeout=_PATIENCE_S)
        try:
            return connection.execute(statement).fetchall()
        finally:
            connection.close()

    def _connected(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=_PATIENCE_S, isolation_level=None, check_same_thread=False)

    def _mount(self, disk: Path) -> bool:
        """Mount a small disk, which only root may do."""
        command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_SIZE},mode=700", "tmpfs", str(disk)]
        if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
            return False
        self._disk.callback(subprocess.run, ["umount", "--lazy", str(disk)], check=True)
        return True

    def _fill(self) -> None:
        """Leave no room on the disk, nor in the log of the database, whose file is reused."""
        connection = self._connected()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        ballast = self._path.parent.with_name("ballast")
        self._fault.callback(ballast.unlink)
        with ballast.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))

    def _in_background(self, work: Callable[[threading.Event], None]) -> None:
        over = threading.Event()
        thread = threading.Thread(target=work, args=(over,), name="slow-database", daemon=True)
        thread.start()
        self._fault.callback(thread.join)
        self._fault.callback(over.set)

    def _hold_in_turns(self, takes_s: float, over: threading.Event) -> None:
        """Make every writer wait: hold the lock for as long as a commit takes, again and again."""
        connection = self._connected()
        while not over.is_set():
            with suppress(sqlite3.OperationalError):
                connection.execute("BEGIN IMMEDIATE")
                over.wait(takes_s)
                connection.execute("ROLLBACK")
            over.wait(FREE_S)
        connection.close()
