"""The line between an executor and its workers: a kind, a task's number, a length, the bytes."""

from __future__ import annotations

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from socket import socket

HEADER = struct.Struct(">BQQ")

MOST_BYTES = 1 << 30
"""The longest message; who announces more is not listened to."""

# ── what a worker says ──
HELLO, READY, STARTED, RETURNED, RAISED = range(1, 6)
"""Who it is; that it takes tasks; that a task begins; what came of it."""

# ── what it is told ──
SETUP, RUN = range(17, 19)


def packed(kind: int, task: int, payload: bytes) -> bytes:
    """One message as bytes."""
    return HEADER.pack(kind, task, len(payload)) + payload


def receive(connection: socket) -> tuple[int, int, bytes] | None:
    """The next message, waiting for it; None once the other side has gone."""
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
