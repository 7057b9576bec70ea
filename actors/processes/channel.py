"""Our end of a worker's channel: a unix socket that the worker controls, and that must never block us.

A unix socket carries descriptors too. When the supervisor takes the bytes beside one, the kernel closes
the descriptor on the supervisor's thread, and the worker decides how long that takes: the close of a TCP
socket with SO_LINGER lasts until its peer has read everything. Linux 6.16 can refuse descriptors at the
sender. On an older kernel this end looks at the data before it takes it: a look shows whether there is a
descriptor and closes none.
"""

from __future__ import annotations

import array
import socket
import threading
from functools import cache

SO_PASSRIGHTS = 83
"""The option of a unix socket that refuses descriptors; Python has no name for it."""


class DescriptorSentError(Exception):
    """The worker sent a descriptor over its channel."""


class WorkerChannel:
    """Our end, which never blocks."""

    def __init__(self, end: socket.socket, *, looks_first: bool) -> None:
        end.setblocking(False)
        self._end = end
        self._looks_first = looks_first

    def fileno(self) -> int:
        """The number of the descriptor."""
        return self._end.fileno()

    def send(self, data: bytes) -> None:
        """Send a line, or as much of it as there is room for.

        Raises:
            OSError: there is no room, or the worker has closed its end.
        """
        # Without SIGPIPE, which would end a host that has not disabled it.
        self._end.send(data, socket.MSG_NOSIGNAL)

    def hand_over(self, data: bytes, descriptors: list[int]) -> None:
        """Send a line with descriptors.

        Raises:
            OSError: there is no room, or the other process has closed its end.
        """
        rights = array.array("i", descriptors)
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)]
        if self._end.sendmsg([data], ancillary, socket.MSG_NOSIGNAL) != len(data):
            raise BlockingIOError("there is no room for the whole line")

    def receive(self, size: int) -> bytes:
        """Data of the worker; nothing at the end of the stream.

        Raises:
            BlockingIOError: there is no data.
            DescriptorSentError: there is a descriptor beside the data, which stays where it is.
            OSError: the channel is broken.
        """
        if not self._looks_first:
            return self._end.recv(size)
        data, _, flags, _ = self._end.recvmsg(size, 0, socket.MSG_PEEK)
        if flags & socket.MSG_CTRUNC:
            raise DescriptorSentError
        return self._end.recv(len(data)) if data else data

    def close(self) -> None:
        """Close it; on a thread of its own, if the worker may have left a descriptor in it."""
        if self._looks_first and self._has_data():
            threading.Thread(target=self._end.close, name="rekindle-close", daemon=True).start()
        else:
            self._end.close()

    def _has_data(self) -> bool:
        try:
            self._end.shutdown(socket.SHUT_RDWR)  # nothing more can arrive
            return bool(self._end.recv(1, socket.MSG_PEEK))
        except OSError:
            return False


def channel_pair() -> tuple[WorkerChannel, socket.socket]:
    """Our end of a new channel, and the worker's.

    Raises:
        OSError: too many open files.
    """
    ours, theirs = socket.socketpair()
    refuses = refuses_descriptors()
    if refuses:
        ours.setsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS, 0)
    return WorkerChannel(ours, looks_first=not refuses), theirs


def inherited_channel(descriptor: int) -> WorkerChannel:
    """Our end of a channel that the former program of this process opened."""
    return WorkerChannel(socket.socket(fileno=descriptor), looks_first=not refuses_descriptors())


@cache
def refuses_descriptors() -> bool:
    """Whether this kernel can refuse descriptors on a unix socket; found by trying."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        try:
            ours.setsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS, 0)
        except OSError:
            return False
        try:
            handed = array.array("i", [theirs.fileno()])
            theirs.sendmsg([b"\n"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, handed)])
        except OSError:
            return True
    return False
