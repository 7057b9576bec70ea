"""One supervisor per store: two that restart the same workers would undo each other's work."""

from __future__ import annotations

import fcntl
import os
import select
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Protocol
from weakref import WeakSet

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import SQLAlchemyError

from rekindle.actors.errors import StoreOwnedError, StoreUnavailableError
from rekindle.worker.jobs.database_files import identity

from .database_file import open_lock, side_file, try_lock
from .driver_errors import translated

_LOCK_SPACE = 0x52656B69  # "Reki": the first half of the advisory lock's key; the schema is the second

_TRY_LOCK = text("SELECT pg_try_advisory_lock(:space, hashtext(coalesce(current_schema(), '')))")
_OWNER = text(
    """
    SELECT activity.application_name AS name, activity.pid AS pid
    FROM pg_locks AS lock JOIN pg_stat_activity AS activity ON activity.pid = lock.pid
    WHERE lock.locktype = 'advisory' AND lock.granted
      AND lock.classid::bigint = :space
      AND lock.objid::bigint = hashtext(coalesce(current_schema(), ''))::bigint & 4294967295
      AND activity.datname = current_database()
    """
)
_NAME_ME = text("SELECT set_config('application_name', :name, false), pg_backend_pid()")
_END_SESSION = text("SELECT pg_terminate_backend(:pid)")


class Ownership(Protocol):
    """The exclusive right to a store."""

    @property
    def holder(self) -> int | None:
        """What holds the right: a descriptor, or the number of a session."""
        ...

    def confirm(self) -> None:
        """Raise `StoreOwnedError` if another supervisor took over; cheap enough for every commit."""

    def release(self) -> None:
        """Release it. Safe to call twice."""


class Unowned:
    """No lock: for readers, and for tests with two stores at once."""

    holder = None

    def confirm(self) -> None:
        """Do nothing."""

    def release(self) -> None:
        """Do nothing."""


GONE_S = 10.0
"""How long to wait for a lock whose owner has certainly ended: a child that the owner was just starting has
a copy of the descriptor until it calls exec, and a busy server notices seconds later that a session ended."""

_RELEASED = "the store {} is closed"


def _is_gone(pid: str) -> bool:
    """Whether the process has ended, reaped or not."""
    if not pid.isdecimal():
        return False
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return True
    return stat.rpartition(b") ")[2][:1] in (b"Z", b"X")


class FileOwnership:
    """A `flock` beside the database; the kernel releases it when the process ends, even by SIGKILL."""

    def __init__(self, database: Path, inherited: int | None = None) -> None:
        """Take the lock, or continue with the one that the former program of this process took."""
        self._database = database
        self._name = str(side_file(database, ".lock"))
        self._descriptor: int | None = inherited
        self._file: tuple[int, int] | None = None
        self._is_released = False
        """Another thread may be confirming at that moment; it must not take the lock again."""
        if inherited is None:
            self._claim()
        else:
            found = os.fstat(inherited)
            self._file = found.st_dev, found.st_ino
            _held_by_files.add(self)
            self.confirm()

    @property
    def holder(self) -> int | None:
        """The descriptor that holds the lock."""
        return self._descriptor

    def confirm(self) -> None:
        """Take the lock again if its file was removed: other processes do not see the old one."""
        try:
            is_ours = self._descriptor is not None and identity(self._name) == self._file
        except OSError as error:
            raise StoreUnavailableError(f"{self._name} cannot be inspected: {error.strerror}") from error
        if not is_ours:
            self.disown()
            self._claim()

    def _claim(self) -> None:
        try:
            self._descriptor = descriptor = open_lock(Path(self._name))
        except OSError as error:
            raise StoreUnavailableError(f"{self._name} cannot be opened: {error.strerror}") from error
        deadline = time.monotonic() + GONE_S
        while not try_lock(descriptor):
            owner = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            if time.monotonic() > deadline or not _is_gone(owner):
                self.disown()
                raise StoreOwnedError(
                    f"the store {self._database} is in use by another supervisor, pid {owner}"
                )
            time.sleep(0.005)
        if self._is_released:
            self.disown()
            raise StoreUnavailableError(_RELEASED.format(self._database))
        found = os.fstat(descriptor)
        self._file = found.st_dev, found.st_ino
        _held_by_files.add(self)
        with suppress(OSError):  # for people and for the error above; only the lock counts
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Release the lock; the file stays, since removing it would race with the next owner."""
        self._is_released = True
        if self._descriptor is not None:
            # Not only by closing it: a fork that has just begun may still have a copy.
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            self.disown()

    def disown(self) -> None:
        """Close the descriptor, but leave the lock to the processes that share it."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


_held_by_files: WeakSet[FileOwnership] = WeakSet()


def _disown() -> None:
    """Close the descriptors in a fork of the host, which would hold the lock for as long as it lives."""
    for ownership in tuple(_held_by_files):
        ownership.disown()


os.register_at_fork(after_in_child=_disown)


_ended_sessions: set[int] = set()
"""The server's process ids of sessions that this process has ended; the server may not have noticed yet."""


def _session_name(pid: int) -> str:
    """How a session says whose it is; the server keeps 63 characters."""
    return f"rekindle pid {pid} on {socket.gethostname()}"[:63]


def _has_ended(backend: int, name: str) -> bool:
    """Whether this process has ended the session, or the process of this machine that had it is gone."""
    if backend in _ended_sessions:
        return True
    pid = name.removeprefix("rekindle pid ").partition(" ")[0]
    return pid.isdecimal() and name == _session_name(int(pid)) and _is_gone(pid)


FORMER_S = 5.0
"""How long the session of the former program of this process may take to end."""


class ServerOwnership:
    """An advisory lock of a PostgreSQL session that serves no other purpose.

    The server releases the lock shortly after the session has ended, so a lock is waited for if its owner
    has released it, or was a process that has ended.

    The lock ends with the session (for example when the server restarts), so `confirm` checks whether
    the session is alive and takes the lock again if it is not. If the server has not noticed that
    our former session is gone (for example after a network failure), that session is terminated:
    it must not lock us out.
    """

    def __init__(self, engine: Engine, name: str, former: int | None = None) -> None:
        """Take the lock; a session that the former program of this process left is ended."""
        self._engine = engine
        self._name = name
        self._session: Connection | None = None
        self._is_released = False
        """Another thread may be confirming at that moment; it must not take the lock again."""
        self._backend: int | None = former
        """The server's process id of the latest session that held the lock."""
        deadline = time.monotonic() + (0.0 if former is None else FORMER_S)
        while True:
            try:
                self._claim()
                return
            except StoreUnavailableError:
                if self._backend is None or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    @property
    def holder(self) -> int | None:
        """The server's process id of the session that holds the lock."""
        return self._backend

    def confirm(self) -> None:
        """Take the lock again if its session is gone."""
        if self._session is not None and self._is_alive(self._session):
            return
        self._end_session()
        self._claim()
        if self._is_released:
            self._end_session()
            raise StoreUnavailableError(_RELEASED.format(self._name))

    def release(self) -> None:
        """End the session, and the lock with it."""
        self._is_released = True
        self._end_session()

    def _end_session(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            if self._backend is not None:
                _ended_sessions.add(self._backend)
            session.invalidate()
            session.close()

    def _claim(self) -> None:
        with translated(self._name):
            session = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            try:
                _, backend = session.execute(_NAME_ME, {"name": _session_name(os.getpid())}).one()
                deadline = time.monotonic() + GONE_S
                while not session.scalar(_TRY_LOCK, {"space": _LOCK_SPACE}):
                    self._refuse(session, deadline)
                    time.sleep(0.01)
                # Only now: a session without the lock must never be taken for one with it.
                self._session, self._backend = session, backend
                _ended_sessions.discard(backend)
            finally:
                if self._session is not session:
                    session.invalidate()
                    session.close()

    def _refuse(self, session: Connection, deadline: float) -> None:
        """Raise an error that names the owner of the lock, unless the server is about to release it."""
        owner = session.execute(_OWNER, {"space": _LOCK_SPACE}).first()
        if owner is not None and owner.pid == self._backend:
            session.execute(_END_SESSION, {"pid": self._backend})
            raise StoreUnavailableError(f"the store {self._name} still held our former session")
        if time.monotonic() < deadline and (owner is None or _has_ended(owner.pid, owner.name)):
            return
        name = "unknown" if owner is None else owner.name
        raise StoreOwnedError(f"the store {self._name} is in use by another supervisor: {name}")

    @staticmethod
    def _is_alive(session: Connection) -> bool:
        try:
            driver = session.connection.driver_connection
            if driver is None or driver.closed:
                return False
            # The server sends nothing to an idle session, except when it ends.
            poll = select.poll()
            poll.register(driver.fileno(), select.POLLIN)
            if not poll.poll(0):
                return True
            session.execute(text("SELECT 1"))
        except (SQLAlchemyError, OSError, ValueError):
            return False
        return True
