"""The queue in an SQLite file.

Only one process can write at a time. SQLite waits by sleeping for longer and longer, so four busy
workers would mostly sleep. Workers wait in the kernel instead, on the lock of a file beside the
database; SQLite's lock is still the one that protects the data. Other writers go first, otherwise
they would hardly ever find the file free (`rekindle.persistence.database.write_priority`).
"""

from __future__ import annotations

import fcntl
import os
import select
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any
from weakref import WeakSet

from . import sql
from .claims import (
    Claim,
    Claimant,
    ClaimRequest,
    Ending,
    Exchanged,
    QueueUnavailableError,
    Taken,
    claim_of,
    delivered_values,
    due_values,
    ending_values,
    fence_values,
    is_expired,
    next_due,
    now_wall_ms,
    request_values,
)
from .database_files import LOG_LOST, identity, is_log_lost, uri_escaped
from .limits.limited_claims import Run, limited_claim, limited_next, limits_of
from .notice import Notices, notify, notify_all

BUSY_TIMEOUT_MS = 5000
TURN_SUFFIX = ".turn"
WANT_SUFFIX = ".want"
LONGEST_YIELD_S = 0.1
"""The longest time that a worker lets other writers go first."""

MOST_EXPIRED = 100
"""How many expired jobs a claim passes over before it lets others write."""

GLANCE_S = 0.1
"""How often an idle worker looks for jobs where no notices are possible."""


class SqliteClaims:
    """The `Claims` of an SQLite file."""

    def __init__(self, path: str, claimant: Claimant) -> None:
        self._path = path
        self._claimant = claimant
        self._connection: sqlite3.Connection | None = None
        self._turn: int | None = None
        self._want: int | None = None
        self._notices: Notices | None = None
        self._file: tuple[int, int] | None = None
        self._limited: set[str] = set()
        """The queues that were found to have limits."""
        _all.add(self)

    def exchange(self, ending: Ending | None, request: ClaimRequest | None) -> Exchanged:
        """Record an ending and claim the next job, in one transaction."""
        accepted, exchanged, has_followers = None, Exchanged(), False
        with self._transaction() as connection:
            before = connection.total_changes
            if ending is not None:
                ended = connection.execute(ending.statement, ending_values(ending, self._claimant)).fetchall()
                accepted = ended == [(ending.state,)]
            has_followers = connection.total_changes > before + 1  # triggers released or cancelled jobs
            if request is not None:
                exchanged = self._claim(connection, request)
        if has_followers:
            notify_all(self._path)
        # Other workers may wait for the end of a job whose queue has limits.
        if ending is not None and (ending.state == "pending" or ending.claim.queue in self._limited):
            notify(self._path, [ending.claim.queue])
        if exchanged.claim is not None and self._notices is not None:
            self._notices.pass_on()
        return replace(exchanged, accepted=accepted)

    def mine(self) -> tuple[Claim, ...]:
        """Every claim of this claimant that is in force."""
        with self._reading() as connection:
            rows = connection.execute(sql.MINE, self._claimant.values()).fetchall()
        return tuple(claim_of(row) for row in sorted(rows))

    def was_recorded(self, ending: Ending) -> bool:
        """Whether an ending whose outcome is unknown was recorded."""
        with self._reading() as connection:
            values = ending_values(ending, self._claimant)
            return connection.execute(sql.WAS_ENDED, values).fetchone() is not None

    def save(self, claim: Claim, checkpoint: str) -> bool:
        """Store how far the execution came; False: the claim is no longer in force, or is cancelled."""
        return self._note(sql.CHECKPOINT, claim, checkpoint=checkpoint)

    def show(self, claim: Claim, progress: str) -> bool:
        """Store what the execution shows of its progress; False: as above."""
        return self._note(sql.PROGRESS, claim, progress=progress)

    def _note(self, statement: str, claim: Claim, **values: str) -> bool:
        with self._transaction() as connection:
            noted = connection.execute(statement, {**fence_values(claim, self._claimant), **values})
            return noted.rowcount == 1

    def take(self, queue: str, key: str, payload: str) -> Taken:
        """Claim the job beside one that another queue delivered."""
        values = delivered_values(queue, key, payload, self._claimant)
        with self._transaction() as connection:
            found = connection.execute(sql.FIND_DELIVERED, values).fetchone()
            id_, state = found or connection.execute(sql.ADD_DELIVERED, values).fetchall()[0]
            rows = connection.execute(sql.TAKE_DELIVERED, {**values, "id": id_}).fetchall()
        return Taken("running", claim_of(rows[0])) if rows else Taken(state)

    def idle(self, queues: tuple[str, ...], longest_s: float, interruption: int) -> None:
        """Return when there may be a job to claim."""
        deadline = now_wall_ms() + round(longest_s * 1000)
        with self._reading():
            notices = self._noticing(queues)
            while (until := min(deadline, self._next_due(queues))) > now_wall_ms():
                left = (until - now_wall_ms()) / 1000
                if notices is None:
                    if select.select([interruption], [], [], min(left, GLANCE_S))[0]:
                        return
                elif not notices.wait(left, interruption):
                    return

    def close(self) -> None:
        """Close the connection and the files beside the database."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()
        if self._notices is not None:
            self._notices.pass_on()
        self.close_side_files()

    def close_side_files(self) -> None:
        """Close the files beside the database without unlocking them for processes that share them."""
        notices, self._notices = self._notices, None
        if notices is not None:
            notices.close()
        descriptors, self._turn, self._want = (self._turn, self._want), None, None
        for descriptor in descriptors:
            if descriptor is not None:
                os.close(descriptor)

    def _claim(self, connection: sqlite3.Connection, request: ClaimRequest) -> Exchanged:
        for queue in request.queues:
            values = request_values(request, queue, self._claimant)
            rows = connection.execute(sql.SQLITE_CLAIM, values).fetchall()
            for _ in range(MOST_EXPIRED):
                if not rows or not is_expired(rows[0]):
                    break
                rows = connection.execute(sql.SQLITE_CLAIM, values).fetchall()
            if rows:
                return Exchanged(claim=None if is_expired(rows[0]) else claim_of(rows[0]))
            run = partial(_rows, connection)
            if (limits := limits_of(run, queue)) is not None:
                self._limited.add(queue)
                limited = limited_claim(run, request, queue, self._claimant, limits)
                if limited.claim is not None or limited.held_back:
                    return limited
                continue
            is_busy = request.isolate and not request.free
            if is_busy and connection.execute(sql.SUSPECT_WAITS, values).fetchone():
                return Exchanged(held_back=True)
        return Exchanged()

    def _noticing(self, queues: tuple[str, ...]) -> Notices | None:
        """The notices of these queues; None where the file system does not allow them."""
        if self._notices is not None and not self._notices.is_in_place():
            self._notices.close()
            self._notices = None
        if self._notices is None:
            with suppress(OSError):
                self._notices = Notices(self._path, queues)
        return self._notices

    def _next_due(self, queues: tuple[str, ...]) -> float:
        """When the next job is due, or was; infinity if there is none."""
        with self._reading() as connection:
            run = partial(_rows, connection)
            return min(self._next_due_of(queue, run) for queue in queues)

    def _next_due_of(self, queue: str, run: Run) -> float:
        values = due_values(queue, self._claimant)
        limits = limits_of(run, queue)
        if limits is not None:
            return limited_next(run, queue, values, limits)
        return next_due(next(iter(run(sql.NEXT_DUE, values)), None))

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
                f"file:{uri_escaped(self._path)}?mode=rw",
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
        claims.close_side_files()


os.register_at_fork(after_in_child=_forked)


def _rows(connection: sqlite3.Connection, statement: str, values: dict[str, Any]) -> list[Any]:
    return connection.execute(statement, values).fetchall()


def _side_file(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
