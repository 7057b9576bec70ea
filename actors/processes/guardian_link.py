"""Our side of the guardian: the process that ends the workers if we are killed.

It holds the other end of a socket of ours, and the kernel closes ours however we end. Renewed
if somebody kills it. See `worker/guardian.py` for its own side.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import suppress

from loguru import logger

from .spawn.posix_spawn import fork_lock
from .spawn.spawner import worker_file
from .watch.epoll_loop import EpollLoop

MOST_RENEWALS = 5


class GuardianLink:
    """Keeps one guardian alive. Used on the loop only."""

    def __init__(self, mark: str, loop: EpollLoop) -> None:
        self._mark = mark
        self._loop = loop
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._renewals = 0
        self._pidfd = -1
        self._is_dismissed = False

    def start(self) -> None:
        """Start the guardian; without one, foreign programs may outlive a killed supervisor."""
        try:
            self._start()
        except OSError as error:
            logger.warning("no guardian could be started: {}", str(error))

    def _start(self) -> None:
        self._socket, peer = socket.socketpair()
        with peer, fork_lock:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(worker_file("guardian.py")), self._mark, str(os.getpid())],
                stdin=peer.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={name: value for name, value in os.environ.items() if name != "REKINDLE_SYSTEM"},
                cwd="/",
                start_new_session=True,
            )
        self._pidfd = os.pidfd_open(self._process.pid)
        self._loop.watch(self._pidfd, self._ended)

    def _ended(self) -> None:
        self._loop.unwatch(self._pidfd)
        # Not before all that was reported is handled: a new descriptor may get the number
        # of one that was just closed, and the news of the one be taken for the other's.
        self._loop.post(self._renew)

    def _renew(self) -> None:
        """The guardian ended although we live: start another one, within reason."""
        if self._is_dismissed:
            return
        self._let_go()
        self._renewals += 1
        if self._renewals > MOST_RENEWALS:
            logger.error("the guardian ended {} times and is not renewed", self._renewals)
            return
        logger.warning("the guardian ended and is renewed")
        self.start()

    def dismiss(self) -> None:
        """All workers are gone: let the guardian go too."""
        self._is_dismissed = True
        if self._socket is not None:
            with suppress(OSError):
                # A host that wants SIGPIPE must not die of a guardian that was killed.
                self._socket.send(b"done\n", socket.MSG_NOSIGNAL)
        self._let_go()

    def _let_go(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._pidfd != -1:
            self._loop.unwatch(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(5.0)
            self._process = None
