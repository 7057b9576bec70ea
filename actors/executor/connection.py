"""An executor's connection to one worker: it never blocks, and limits the length of messages."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress

from rekindle.worker.executor.task_wire import HEADER, MOST_BYTES, packed

CHUNK = 1 << 18

LONGEST_HELLO = 4096
"""The longest message of a worker that has not identified itself."""


class Connection:
    """One worker's socket, with its unsent bytes and incomplete messages."""

    def __init__(self, line: socket.socket) -> None:
        line.setblocking(False)
        self.line = line
        self.worker: tuple[str, int] | None = None
        """Its id and generation, once it has identified itself."""
        self.ready = False
        self.done = 0
        """How many tasks this incarnation has finished."""
        self._received = bytearray()
        self._unsent = bytearray()

    def send(self, kind: int, task: int, payload: bytes) -> None:
        """Send a message, or as much of it as can be sent now."""
        self._unsent += packed(kind, task, payload)
        self.flush()

    def flush(self) -> None:
        """Send unsent bytes. The reading side detects a worker that is gone."""
        with suppress(OSError):
            while self._unsent:
                sent = self.line.send(self._unsent[:CHUNK], socket.MSG_NOSIGNAL)
                del self._unsent[:sent]

    @property
    def sends(self) -> bool:
        """Whether there are unsent bytes."""
        return bool(self._unsent)

    @property
    def is_readable(self) -> bool:
        """Whether there are bytes to receive."""
        try:
            return bool(self.line.recv(1, socket.MSG_PEEK))
        except OSError:
            return False

    def receive(self, most: int = 16) -> tuple[list[tuple[int, int, bytes]], bool]:
        """The complete messages, and whether there may be more."""
        open_still = True
        for _ in range(most):
            try:
                data = self.line.recv(CHUNK)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            if not data:
                open_still = False
                break
            self._received += data
        try:
            return list(self._messages()), open_still
        except ValueError:
            return [], False

    def _messages(self) -> Iterator[tuple[int, int, bytes]]:
        while len(self._received) >= HEADER.size:
            kind, task, length = HEADER.unpack_from(self._received)
            if length > (LONGEST_HELLO if self.worker is None else MOST_BYTES):
                raise ValueError(f"a message of {length} bytes")
            end = HEADER.size + length
            if len(self._received) < end:
                return
            payload = bytes(self._received[HEADER.size : end])
            del self._received[:end]
            yield kind, task, payload
