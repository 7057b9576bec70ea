"""The process at the other end of a unix socket, as the kernel identifies it."""

from __future__ import annotations

import os
import socket
import struct
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Peer:
    """The process at the other end."""

    uid: int
    pid: int


def peer_of(connection: Any) -> Peer | None:
    """The peer of a connection; None if the kernel cannot tell."""
    size = struct.calcsize("iII")
    try:
        pid, uid, _ = struct.unpack("iII", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    except (OSError, AttributeError):
        return None
    return Peer(uid=uid, pid=pid)


def may_connect(uid: int) -> bool:
    """Whether this user may use the control socket: the supervisor's own user, and root."""
    return uid in (0, os.geteuid())
