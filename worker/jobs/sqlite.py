"""The queue in an SQLite file.

Only one process can write at a time. SQLite waits by sleeping for longer and longer, so four busy
workers would mostly sleep. Workers wait in the kernel instead, on the lock of a file beside the
database; SQLite's lock is still the one that protects the data. Other writers go first, otherwise
they would hardly ever find the file free (`rekindle.persistence.database.write_priority`).
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from weakref import WeakSet

from . import sql
from .claims import (
    Claim,
    Claimant,
    ClaimRequest,
    Ending,
    Exchanged,
    QueueUnavailableError,
    claim_of,
    due_values,
    ending_values,
    now_wall_ms,
    request_values,
)
from .database_files import LOG_LOST, identity, is_log_lost

BUSY_TIMEOUT_MS = 5000
TURN_SUFFIX = ".turn"
WANT_SUFFIX = ".want"
LONGEST_YIELD_S = 0.1
"""The longest time that a worker lets other writers go first."""

FIRST_GLANCE_S = 0.01
LONGEST_GLANCE_S = 0.2
"""The longest time until an idle worker notices another process's change."""


class SqliteClaims:
    """The `Claims` of an SQLite file."""

    def __init__(self, path: str, claimant: Claimant) -> None:
        self._path = path
        self._claimant = claimant
        self._connection: sqlite3.Connection | None = None
        self._turn: int | None = None
        self._want: int | None = None
        self._seen_version: int | None = None
        self._file: tuple[int, int] | None = None
        _all.add(self)

    def exchange(self, ending: Ending | None, request: ClaimRequest | None) -> Exchanged:
        """Record an ending and claim the next job, in one transaction."""
        accepted = claim = None
        with self._transaction() as connection:
            if ending is not None:
                values = ending_values(ending, self._claimant)
                accepted = connection.execute(ending.statement, values).rowcount == 1
            if request is not None:
                claim = self._claim(connection, request)
        return Exchanged(accepted, claim)

    def mine(self) -> tuple[Claim, ...]:
        """Every claim of this claimant that is in force."""
        with self._reading() as connection:
            return tuple(claim_of(row) for row in connection.execute(sql.MINE, self._claimant.values()))

    def was_recorded(self, ending: Ending) -> bool:
        """Whether an ending whose outcome is unknown was recorded."""
        with self._reading() as connection:
            values = ending_values(ending, self._claimant)
            return connection.execute(sql.WAS_ENDED, values).fetchone() is not None

    def idle(self, queues: tuple[str, ...], longest_s: float, wait: Callable[[float], bool]) -> None:
        """Return when there may be a job to claim.

        A glance reads one page of shared memory; the tables are queried only when another
        connection has written to the file or a delayed job is due.
        """
        deadline = now_wall_ms() + round(longest_s * 1000)
        glance = FIRST_GLANCE_S
        while True:
            due = self._next_due(queues)
            if due is None:
                return
            version = self._seen_version
            until = min(deadline, due)
            while self._version() == version:
                left = (until - now_wall_ms()) / 1000
                if left <= 0 or wait(min(glance, left)):
                    return
                glance = min(glance * 1.5, LONGEST_GLANCE_S)

    def close(self) -> None:
        """Close the connection and the files of the turn."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()
        self.let_go_of_turns()

    def let_go_of_turns(self) -> None:
        """Close the files of the turn without unlocking them for processes that share them."""
        descriptors, self._turn, self._want = (self._turn, self._want), None, None
        for descriptor in descriptors:
            if descriptor is not None:
                os.close(descriptor)

    def _claim(self, connection: sqlite3.Connection, request: ClaimRequest) -> Claim | None:
        for queue in request.queues:
            values = request_values(request, queue, self._claimant)
            rows = connection.execute(sql.SQLITE_CLAIM, values).fetchall()
            if rows:
                return claim_of(rows[0])
            held_back = request.isolate and not request.free
            if held_back and connection.execute(sql.SUSPECT_WAITS, values).fetchone():
                return None
        return None

    def _next_due(self, queues: tuple[str, ...]) -> float | None:
        """When the next delayed job is due, infinity if there is none; None if a job is due now."""
        with self._reading() as connection:
            # Before the queries: a write after this changes the version.
            self._seen_version = _data_version(connection)
            due = float("inf")
            for queue in queues:
                values = due_values(queue, self._claimant)
                found = connection.execute(sql.NEXT_DUE, values).fetchone()
                if found is not None and found[0] is not None:
                    due = min(due, found[0])
            return due if due > now_wall_ms() else None

    def _version(self) -> int:
        with self._reading() as connection:
            return _data_version(connection)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = self._open()
            if identity(self._path) != self._file:
                raise OSError("its file was removed or replaced")
            yield connection
        except (sqlite3.Error, OSError) as error:
            self.close()
            raise QueueUnavailableError(str(error)) from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._reading() as connection:
            assert self._turn is not None
            fcntl.flock(self._turn, fcntl.LOCK_EX)
            try:
                self._yield_to_writers()
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            finally:
                fcntl.flock(self._turn, fcntl.LOCK_UN)

    def _yield_to_writers(self) -> None:
        """Let other writers go first; all workers wait meanwhile, since this one has the turn."""
        assert self._want is not None
        deadline = time.monotonic() + LONGEST_YIELD_S
        while True:
            try:
                fcntl.flock(self._want, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    return
                time.sleep(0.0005)
            else:
                fcntl.flock(self._want, fcntl.LOCK_UN)
                return

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            if is_log_lost(self._path):
                raise OSError(LOG_LOST)
            self._file = identity(self._path)
            self._turn = _side_file(self._path + TURN_SUFFIX)
            self._want = _side_file(self._path + WANT_SUFFIX)
            self._connection = sqlite3.connect(
                f"file:{_uri_escaped(self._path)}?mode=rw",
                uri=True,
                isolation_level=None,
                timeout=BUSY_TIMEOUT_MS / 1000,
                check_same_thread=False,
            )
            self._connection.execute("PRAGMA synchronous = FULL")
        return self._connection


_all: WeakSet[SqliteClaims] = WeakSet()


def _forked() -> None:
    """Close a fork's copies: it would hold the turn of a killed parent for as long as it lives."""
    for claims in tuple(_all):
        claims.let_go_of_turns()


os.register_at_fork(after_in_child=_forked)


def _side_file(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _data_version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA data_version").fetchone()
    return int(version)


def _uri_escaped(path: str) -> str:
    # SQLite's three special characters: the percent sign first, or the others are escaped twice.
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
