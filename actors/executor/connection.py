"""An executor's connection to one worker: it never blocks, and limits the length of messages."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Iterator
from contextlib import suppress

from rekindle.worker.executor.task_wire import HEADER, LONG, MOST_BYTES, packed

CHUNK = 1 << 18

LONGEST_HELLO = 4096
"""The longest message of a worker that has not identified itself."""

Message = tuple[int, int, bytes | bytearray]
"""A kind, the number of a task, and the payload."""


class LongMessage:
    """A long message that has not arrived completely: it is received into its place, without a copy."""

    def __init__(self, kind: int, task: int, length: int, begun: bytearray) -> None:
        self.head = (kind, task)
        self.payload = bytearray(length)
        self.payload[: len(begun)] = begun
        self.rest = memoryview(self.payload)[len(begun) :]

    def receive(self, line: socket.socket) -> int:
        """Receive what has arrived; how many bytes it was."""
        count = line.recv_into(self.rest)
        self.rest = self.rest[count:]
        return count


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
        self._long: LongMessage | None = None
        self._unsent: deque[memoryview] = deque()

    def send(self, kind: int, task: int, payload: bytes) -> None:
        """Send a message, or as much of it as can be sent now."""
        if len(payload) < LONG:
            self._unsent.append(memoryview(packed(kind, task, payload)))
        else:
            self._unsent += memoryview(HEADER.pack(kind, task, len(payload))), memoryview(payload)
        self.flush()

    def flush(self) -> None:
        """Send unsent bytes. The reading side detects a worker that is gone."""
        with suppress(OSError):
            while self._unsent:
                sent = self.line.send(self._unsent[0], socket.MSG_NOSIGNAL)
                if sent == len(self._unsent[0]):
                    self._unsent.popleft()
                else:
                    self._unsent[0] = self._unsent[0][sent:]

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

    def receive(self, most: int = 16) -> tuple[list[Message], bool]:
        """The complete messages, and whether there may be more."""
        messages: list[Message] = []
        try:
            for _ in range(most):
                count = self._receive_some()
                messages += self._messages()
                if not count or (count < CHUNK and self._long is None):
                    return messages, count > 0
        except BlockingIOError:
            return messages, True
        except (OSError, ValueError):
            return messages, False
        return messages, True

    def _receive_some(self) -> int:
        """Receive bytes; how many, 0 at the end of the stream."""
        if self._long is not None:
            return self._long.receive(self.line)
        data = self.line.recv(CHUNK)
        self._received += data
        return len(data)

    def _messages(self) -> Iterator[Message]:
        if self._long is not None:
            if self._long.rest:
                return
            yield *self._long.head, self._long.payload
            self._long = None
        while len(self._received) >= HEADER.size:
            kind, task, length = HEADER.unpack_from(self._received)
            if length > (LONGEST_HELLO if self.worker is None else MOST_BYTES):
                raise ValueError(f"the message has {length} bytes, more than the limit")
            end = HEADER.size + length
            if len(self._received) < end:
                if length >= LONG:
                    self._long = LongMessage(kind, task, length, self._received[HEADER.size :])
                    self._received.clear()
                return
            payload = bytes(self._received[HEADER.size : end])
            del self._received[:end]
            yield kind, task, payload
