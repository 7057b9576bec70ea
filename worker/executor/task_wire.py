"""The messages between an executor and its workers: a kind, a task's number, a length, the bytes."""

from __future__ import annotations

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from socket import socket

HEADER = struct.Struct(">BQQ")

MOST_BYTES = 1 << 30
"""The longest message; a connection that announces more is dropped."""

LONG = 1 << 16
"""From this length on a payload is sent and received by itself, without being copied."""

# ── from a worker ──
HELLO, READY, STARTED, RETURNED, RAISED = range(1, 6)
"""Its identity; that it accepts tasks; that a task begins; the task's outcome."""

# ── to a worker ──
SETUP, RUN = range(17, 19)


def packed(kind: int, task: int, payload: bytes) -> bytes:
    """One message as bytes."""
    return HEADER.pack(kind, task, len(payload)) + payload


def send(connection: socket, kind: int, task: int, payload: bytes) -> None:
    """Send a message; waits until all of it is sent."""
    if len(payload) < LONG:
        connection.sendall(packed(kind, task, payload))
    else:
        connection.sendall(HEADER.pack(kind, task, len(payload)))
        connection.sendall(payload)


def receive(connection: socket) -> tuple[int, int, bytearray] | None:
    """Wait for the next message; None once the other side has closed."""
    header = _exactly(connection, HEADER.size)
    if header is None:
        return None
    kind, task, length = HEADER.unpack(header)
    payload = _exactly(connection, length)
    return None if payload is None else (kind, task, payload)


def _exactly(connection: socket, length: int) -> bytearray | None:
    data = bytearray(length)
    rest = memoryview(data)
    while rest:
        try:
            count = connection.recv_into(rest)
        except ConnectionResetError:
            return None
        if not count:
            return None
        rest = rest[count:]
    return data
