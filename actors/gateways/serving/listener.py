"""A listening socket whose connections are limited when they are accepted, before any TLS handshake.

asyncio creates the protocol of a TLS connection after its handshake, so a limit in the protocol does not
see clients that never begin one. Each of them holds a descriptor and 0.3 MB of memory.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import resource
import socket
import time
from contextlib import suppress
from typing import Any

HANDSHAKE_S = 5.0
"""How long a client may take for the TLS handshake."""
MOST_HANDSHAKES = 64
"""How many connections may be in a handshake while all others are in use."""
FEWEST_CONNECTIONS = 4
COLLECT_AFTER = 32
"""After how many connections that ended without a handshake their memory is collected."""
COLLECT_DELAY_S = 1.0
_SHARE = 8
"""One gateway uses at most this part of the descriptors: the rest is for workers."""
_RETRY_S = 0.5
"""How long accepting stops when no descriptor is left. asyncio resumes it after a second."""
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


def room_for(wanted: int) -> int:
    """How many connections a gateway may have that wants this many: at most its share of the descriptors."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if soft == resource.RLIM_INFINITY else max(FEWEST_CONNECTIONS, min(wanted, soft // _SHARE))


class Listener(socket.socket):
    """A listening socket that knows its open connections. Used by the thread of the event loop."""

    def __init__(self, listening: socket.socket, most: int, *, tls: bool) -> None:
        """Take over a socket; the given object no longer owns it.

        Args:
            listening: the socket.
            most: how many connections may be in use at the same time.
            tls: whether connections begin with a handshake.
        """
        super().__init__(listening.family, listening.type, listening.proto, fileno=listening.detach())
        self._most = most + min(most, MOST_HANDSHAKES)
        self._tls = tls
        self._open: dict[int, _Connection] = {}
        """By descriptor, the oldest first."""
        self._retry_at = 0.0
        self._unfinished = 0
        """How many connections ended without a handshake since memory was last collected."""

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection. If there are too many, the oldest without a handshake is closed.

        Raises:
            OSError: none can be accepted now; asyncio tries again.
        """
        # CPython 3.11 does not leave its loop after EMFILE: it would report it once for each connection
        # that waits, and schedule as many restarts of the loop.
        if time.monotonic() < self._retry_at:
            raise BlockingIOError(errno.EAGAIN, "no descriptor is left")
        is_full = len(self._open) >= self._most
        if is_full and self._is_making_room():
            # Accepted in the next round of the event loop, when the other one is closed.
            raise BlockingIOError(errno.EAGAIN, "too many connections")
        try:
            accepted, address = super().accept()
        except OSError as error:
            if error.errno in _EXHAUSTED:
                self._retry_at = time.monotonic() + _RETRY_S
            raise
        if is_full:
            accepted.close()
            raise ConnectionAbortedError(errno.ECONNABORTED, "too many connections")
        connection = _Connection(self, accepted)
        self._open[connection.fileno()] = connection
        return connection, address

    def established(self, descriptor: int) -> None:
        """The handshake of a connection is done, or it needs none."""
        connection = self._open.get(descriptor)
        if connection is not None:
            connection.deadline.cancel()
            connection.established = True

    def forget(self, descriptor: int) -> None:
        """A connection is closed."""
        connection = self._open.pop(descriptor, None)
        if connection is None or connection.established or not self._tls:
            return
        # asyncio's objects of a TLS connection refer to each other, and hold 0.3 MB until they are collected.
        self._unfinished += 1
        if self._unfinished == COLLECT_AFTER:
            with suppress(RuntimeError):  # the loop has ended
                asyncio.get_running_loop().call_later(COLLECT_DELAY_S, self._collect)

    def _collect(self) -> None:
        self._unfinished = 0
        gc.collect()

    def _is_making_room(self) -> bool:
        """Cut the oldest connection without a handshake; False if all are in use."""
        waiting = [connection for connection in self._open.values() if not connection.established]
        if self._tls and waiting:
            waiting[0].cut()
        return bool(waiting)


class _Connection(socket.socket):
    """A connection that tells its listener when it is closed."""

    def __init__(self, listener: Listener, accepted: socket.socket) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, fileno=accepted.detach())
        self.established = False
        self.deadline = asyncio.get_running_loop().call_later(HANDSHAKE_S, self.cut)
        self._listener = listener

    def cut(self) -> None:
        """End the connection; its transport notices and closes it."""
        with suppress(OSError):
            self.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the descriptor."""
        self.deadline.cancel()
        self._listener.forget(self.fileno())
        super().close()
