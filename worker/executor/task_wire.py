"""The messages between an executor and its workers: a kind, a task's number, a length, the bytes."""

from __future__ import annotations

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from socket import socket

HEADER = struct.Struct(">BQQ")

MOST_BYTES = 1 << 30
"""The longest message; a connection that announces more is dropped."""

# ── from a worker ──
HELLO, READY, STARTED, RETURNED, RAISED = range(1, 6)
"""Its identity; that it accepts tasks; that a task begins; the task's outcome."""

# ── to a worker ──
SETUP, RUN = range(17, 19)


def packed(kind: int, task: int, payload: bytes) -> bytes:
    """One message as bytes."""
    return HEADER.pack(kind, task, len(payload)) + payload


def receive(connection: socket) -> tuple[int, int, bytes] | None:
    """Wait for the next message; None once the other side has closed."""
    header = _exactly(connection, HEADER.size)
    if header is None:
        return None
    kind, task, length = HEADER.unpack(header)
    payload = _exactly(connection, length)
    return None if payload is None else (kind, task, payload)


def _exactly(connection: socket, length: int) -> bytes | None:
    data = bytearray()
    while len(data) < length:
        try:
            part = connection.recv(min(length - len(data), 1 << 20))
        except ConnectionResetError:
            return None
        if not part:
            return None
        data += part
    return bytes(data)
