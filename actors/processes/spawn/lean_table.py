"""A thread with a descriptor table of its own, from which programs are started when the process has many.

The kernel copies the descriptor table of the thread that starts a program, and closes all of it again before
the program runs: with three thousand workers (9,000 descriptors) a start takes 1 ms instead of 0.1. The table
of this thread is empty but for the descriptors of the new process, so a start costs the same for any number.

Python code that runs on this thread must not close a descriptor of another thread. So the thread makes one
call at a time and nothing else, and no garbage is collected meanwhile: an object that is garbage would close
its descriptor in the wrong table.

Not for a program that the kernel signals at the end of its parent, because for the kernel this thread is its
parent: the launcher outlives it when the supervisor is upgraded.
"""

from __future__ import annotations

import _thread
import array
import ctypes
import gc
import os
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from loguru import logger

MANY = 600
"""From this descriptor number on, handing a start over costs less than copying the table."""

_UNSHARE = 2
_LAST = 0xFFFFFFFF
_MOST_DESCRIPTORS = 32
"""Of one process: its streams, sixteen sockets, its channel and the file for stacks."""
_RESERVED = _MOST_DESCRIPTORS
"""Numbers below this are taken in the table: the new process has its descriptors there."""

Spawn = Callable[[Sequence[int]], int]
"""Starts a program with these descriptors; its pid."""


class LeanTable:
    """Starts programs, with many descriptors on its own thread. Used by one thread at a time."""

    def __init__(self) -> None:
        self._thread: _SpawnThread | None = None
        self._is_possible = True

    def start(self, descriptors: Sequence[int], spawn: Spawn) -> int:
        """Start a program with these descriptors; its pid.

        Raises:
            OSError: it could not be started.
        """
        is_large = len(descriptors) > _MOST_DESCRIPTORS  # it has many sockets
        if max(descriptors) < MANY or is_large or not self._is_possible:
            return spawn(descriptors)
        if self._thread is None:
            try:
                self._thread = _SpawnThread()
            except (OSError, RuntimeError) as error:
                self._is_possible = False
                logger.info(
                    "processes: the thread for fast starts cannot begin, so starts take longer: {}",
                    error,
                )
                return spawn(descriptors)
        return self._thread.start(descriptors, spawn)

    def close(self) -> None:
        """End the thread."""
        if self._thread is not None:
            self._thread.close()
            self._thread = None


class _SpawnThread:
    """
    Raises:
        OSError: the kernel or the C library cannot do this.
        RuntimeError: no thread can be started.
    """

    def __init__(self) -> None:
        self._wanted, self._done = threading.Lock(), threading.Lock()
        self._wanted.acquire()
        self._done.acquire()
        self._spawn: Spawn | None = None
        self._result: int | BaseException = 0
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            # Not a `threading.Thread`: debuggers and profilers, which have sockets, trace those.
            with theirs, _no_garbage_collection():
                _thread.start_new_thread(self._run, (theirs.fileno(),))
                self._done.acquire()
            if isinstance(self._result, BaseException):
                raise self._result
        except BaseException:
            self._ours.close()
            raise

    def start(self, descriptors: Sequence[int], spawn: Spawn) -> int:
        """Start a program with these descriptors of the calling thread; its pid.

        Raises:
            OSError: it could not be started.
        """
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
        self._ours.sendmsg([b"\0"], rights)
        self._spawn = spawn
        self._hand_over()
        if isinstance(self._result, BaseException):
            raise self._result
        return self._result

    def close(self) -> None:
        """End the thread."""
        self._spawn = None
        self._hand_over()
        self._ours.close()

    def _hand_over(self) -> None:
        with _no_garbage_collection():
            self._wanted.release()
            self._done.acquire()

    # ── the thread ───────────────────────────────────────────────────────────────────────

    def _run(self, inbox: int) -> None:
        wait, done = self._wanted.acquire, self._done.release
        try:
            _leave_others(inbox)
            connection = socket.socket(fileno=inbox)
        except BaseException as error:  # noqa: BLE001  # raised where the thread was asked for
            self._result = error
            done()
            return
        done()
        while wait() and self._spawn is not None:
            try:
                self._result = _started(connection, self._spawn)
            except BaseException as error:  # noqa: BLE001  # raised in the thread that asked for the start
                self._result = error
            done()
        connection.close()
        done()


def _started(connection: socket.socket, spawn: Spawn) -> int:
    _, descriptors, _, _ = socket.recv_fds(connection, 1, _MOST_DESCRIPTORS)
    try:
        return spawn(descriptors)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _leave_others(inbox: int) -> None:
    """Give this thread a table of its own with this descriptor only, under all reserved numbers."""
    library = ctypes.CDLL(None, use_errno=True)
    try:
        close_range = library.close_range
    except AttributeError:
        raise OSError("the C library has no close_range") from None
    if close_range(ctypes.c_uint(inbox + 1), ctypes.c_uint(_LAST), _UNSHARE) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    for number in range(_RESERVED):
        if number != inbox:
            os.dup2(inbox, number, inheritable=False)
    if inbox > _RESERVED:
        os.closerange(_RESERVED, inbox)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
