"""The supervisor's side of the guardian, the process that ends the workers if the supervisor is killed.

It holds the other end of a socket of the supervisor; the kernel closes the supervisor's end however the
supervisor ends. A guardian that is killed is started again. See `worker/guardian.py` for the other side.
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

MOST_RESTARTS = 5


class GuardianLink:
    """Keeps one guardian running. Used on the loop only."""

    def __init__(self, mark: str, loop: EpollLoop) -> None:
        self._mark = mark
        self._loop = loop
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._restarts = 0
        self._pidfd = -1
        self._is_dismissed = False

    def start(self) -> None:
        """Start the guardian; without one, commands may outlive a killed supervisor."""
        try:
            self._start()
        except OSError as error:
            logger.warning("guardian: cannot be started: {}", str(error))

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
        # Posted: a new descriptor may get the number of one that a handler has just closed, and a
        # pending report about the closed one would be taken for the new one.
        self._loop.post(self._restart)

    def _restart(self) -> None:
        """The guardian ended before the supervisor: start another one, a limited number of times."""
        if self._is_dismissed:
            return
        self._release()
        self._restarts += 1
        if self._restarts > MOST_RESTARTS:
            logger.error("guardian: ended {} times and is not started again", self._restarts)
            return
        logger.warning("guardian: ended and is started again")
        self.start()

    def dismiss(self) -> None:
        """All workers have ended: let the guardian exit."""
        self._is_dismissed = True
        if self._socket is not None:
            with suppress(OSError):
                # Without SIGPIPE, which would end a host that has not disabled it.
                self._socket.send(b"done\n", socket.MSG_NOSIGNAL)
        self._release()

    def _release(self) -> None:
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
