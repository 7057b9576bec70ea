"""The socket to which a worker sends what systemd's sd_notify defines; one for each process.

Its address is abstract, so that it needs no file, and a worker of another user or in another root directory
reaches it. Any process of the machine may send to it: the kernel says which one did. A datagram may carry
descriptors, and how long it takes to close one is up to its sender, so a thread of its own does that.
"""

from __future__ import annotations

import array
import os
import secrets
import socket
import struct
import threading
from collections.abc import Iterable

import msgspec

from ..facts.notify_datagram import MOST_BYTES
from ..runtime.lanes import Call
from .channel import SO_PASSRIGHTS, refuses_descriptors

_CREDENTIALS = struct.Struct("iII")
_MOST_DESCRIPTORS = 253
"""The kernel allows no more in one datagram."""
_ROOM = socket.CMSG_SPACE(_CREDENTIALS.size) + socket.CMSG_SPACE(
    _MOST_DESCRIPTORS * array.array("i").itemsize
)


class Datagram(msgspec.Struct, frozen=True):
    """What was sent, and by which process."""

    data: bytes
    pid: int
    is_whole: bool
    descriptors: tuple[int, ...] = ()
    """Ours now: they must be closed."""


class NotifySocket:
    """Our end, which never blocks."""

    def __init__(self) -> None:
        """Open it.

        Raises:
            OSError: too many open files.
        """
        name = f"rekindle-{secrets.token_hex(16)}"
        self.address = f"@{name}"
        """The value of NOTIFY_SOCKET."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            self._socket.setblocking(False)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            if refuses_descriptors():
                # Any user may send here: a descriptor that takes long to close would keep the worker unheard.
                self._socket.setsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS, 0)
            self._socket.bind(f"\0{name}")
        except BaseException:
            self._socket.close()
            raise

    @classmethod
    def inherited(cls, address: str, descriptor: int) -> NotifySocket:
        """A socket that the former program of this process opened."""
        made = cls.__new__(cls)
        made.address = address
        made._socket = socket.socket(fileno=descriptor)
        return made

    def fileno(self) -> int:
        """The number of the descriptor."""
        return self._socket.fileno()

    def receive(self) -> Datagram:
        """The next datagram.

        Raises:
            BlockingIOError: there is none.
        """
        data, ancillary, flags, _ = self._socket.recvmsg(MOST_BYTES, _ROOM, socket.MSG_CMSG_CLOEXEC)
        pid = 0
        descriptors = array.array("i")
        for level, kind, content in ancillary:
            if level != socket.SOL_SOCKET:
                continue
            if kind == socket.SCM_CREDENTIALS:
                pid = _CREDENTIALS.unpack(content)[0]
            elif kind == socket.SCM_RIGHTS:
                descriptors.frombytes(content[: len(content) - len(content) % descriptors.itemsize])
        return Datagram(data, pid, not flags & socket.MSG_TRUNC, tuple(descriptors))

    def close(self) -> None:
        """Close it; on a thread of its own, because descriptors may be left in it."""
        self._socket.shutdown(socket.SHUT_RDWR)  # nothing more can arrive
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except OSError:
            self._socket.close()
        else:
            threading.Thread(target=self._socket.close, name="rekindle-close", daemon=True).start()


def close_all(descriptors: Iterable[int], closed: Call) -> None:
    """Close descriptors that a worker sent, each of which may take as long as the worker likes."""

    def close() -> None:
        for descriptor in descriptors:
            os.close(descriptor)
        closed()

    threading.Thread(target=close, name="rekindle-close", daemon=True).start()
