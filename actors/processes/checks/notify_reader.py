"""Reads the notify socket of one process, and passes on what the worker says there.

Any process of the machine may send to the socket. The kernel says which one did, and only the worker's own
are heard: its process, the processes of its session, and their descendants.
"""

from __future__ import annotations

import os
import time

from loguru import logger

from ...facts.notify_datagram import MOST_BYTES, parse
from ...messages.internal.to_monitor import NoticeReceived
from ...runtime.resilient_actor import tell
from ..child import Child
from ..notify_socket import Datagram, NotifySocket, close_all
from ..strays import session_of
from ..watch.epoll_loop import EpollLoop

AT_ONCE = 16
"""How many datagrams are read before it is the turn of other workers."""
PER_SECOND = 100
"""A worker that sends more has to wait until the next second."""
MOST_ANCESTORS = 64


class NotifyReader:
    """Used on the loop that watches the processes."""

    def __init__(self, child: Child, notify: NotifySocket, loop: EpollLoop) -> None:
        self._child = child
        self._notify = notify
        self._loop = loop
        self._since = time.monotonic()
        self._read_since = 0
        self._is_over = False
        self._told: set[str] = set()
        child.finish_notices = self._finish

    def watch(self) -> None:
        """Read whenever there is something to read.

        Raises:
            OSError: the kernel's limit of watched descriptors is reached.
        """
        self._loop.watch(self._notify.fileno(), self._on_readable)

    def _finish(self) -> None:
        """Read what an ended process has left, and nothing after that."""
        if not self._is_over:
            self._read()
        self._is_over = True

    def _on_readable(self) -> None:
        if not self._read():
            self._loop.unwatch(self._notify.fileno())
            self._loop.after(1.0, self._resume)

    def _resume(self) -> None:
        if not self._is_over and not self._loop.watches(self._notify.fileno()):
            self.watch()

    def _read(self) -> bool:
        """Take some datagrams; False if it is not allowed to send more in this second."""
        now = time.monotonic()
        if now - self._since >= 1:
            self._since, self._read_since = now, 0
        for _ in range(AT_ONCE):
            if self._read_since >= PER_SECOND:
                self._warn("sends too many notifications; they are read later")
                return False
            try:
                datagram = self._notify.receive()
            except OSError:  # there is none
                break
            self._read_since += 1
            self._take(datagram)
            if datagram.descriptors:
                # The next ones wait until these are closed, however long that takes.
                self._loop.unwatch(self._notify.fileno())
                close_all(datagram.descriptors, lambda: self._loop.post(self._resume))
                break
        return True

    def _take(self, datagram: Datagram) -> None:
        if not is_of_worker(datagram.pid, self._child.pid):
            self._warn(f"a notification of process {datagram.pid}, which is not the worker's, is ignored")
            return
        if not datagram.is_whole:
            self._warn(f"a notification of more than {MOST_BYTES} bytes is ignored")
            return
        notice = parse(datagram.data)
        if notice.main_pid and notice.main_pid != str(self._child.pid):
            self._warn(f"MAINPID={notice.main_pid} is ignored: the supervisor watches what it started")
        tell(self._child.request.monitor, NoticeReceived(self._child.id, self._child.generation, notice))

    def _warn(self, words: str) -> None:
        """Say so once."""
        kind = words.partition(" of process")[0]
        if kind not in self._told:
            self._told.add(kind)
            logger.bind(worker=self._child.id).warning("notify: {}: {}", self._child.id, words)


def is_of_worker(pid: int, worker: int) -> bool:
    """Whether a process is the worker's: itself, of its session, or a descendant.

    One that has ended meanwhile cannot be told from another program's, and is not.
    """
    if pid == worker:
        return True
    return pid > 0 and (session_of(pid) == worker or _descends(pid, worker))


def _descends(pid: int, worker: int) -> bool:
    for _ in range(MOST_ANCESTORS):
        parent = _parent(pid)
        if parent == worker:
            return True
        if parent <= 1 or parent == os.getpid():
            return False
        pid = parent
    return False


def _parent(pid: int) -> int:
    """The parent of a process; 0 if there is none, or the process has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return int(stat.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0
