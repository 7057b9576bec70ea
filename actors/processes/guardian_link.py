"""The supervisor's side of the guardian, the process that ends the workers if the supervisor is killed.

It holds the other end of a socket of the supervisor; the kernel closes the supervisor's end however the
supervisor ends. A guardian that is killed is started again. See `worker/guardian.py` for the other side.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from loguru import logger

from .spawn.posix_spawn import fork_lock
from .spawn.worker_command import worker_file
from .watch.epoll_loop import EpollLoop
from .watch.reaper import reap

MOST_RESTARTS = 5
REST_S = 60.0
"""How long the next start waits after that many in a row within this time."""


END_S = 5.0
"""How long a guardian may take to end."""


class GuardianLink:
    """Keeps one guardian running. Used on the loop only, but for the lease."""

    def __init__(self, mark: str, loop: EpollLoop) -> None:
        self._mark = mark
        self._loop = loop
        self._socket: socket.socket | None = None
        self._pid: int | None = None
        self._restarts: list[float] = []
        self._pidfd = -1
        self._is_dismissed = False
        self._cgroup: Path | None = None
        self._lease: float | None = None

    def known(self) -> dict[str, int]:
        """The descriptors to hand over when the supervisor is upgraded; empty while no guardian runs."""
        if self._socket is None or self._pidfd == -1:
            return {}
        return {"guardian": self._socket.fileno(), "guardian_pidfd": self._pidfd}

    def take_over(self, pid: int, link: int, pidfd: int, cgroup: Path | None) -> None:
        """Go on with the guardian that the former program of this process started."""
        self._socket, self._pid, self._pidfd = socket.socket(fileno=link), pid, pidfd
        self._cgroup = cgroup
        self._loop.watch(self._pidfd, self._ended)

    def start(self) -> None:
        """Start the guardian; without one, commands may outlive a killed supervisor, so it is tried again."""
        try:
            self._start()
        except OSError as error:
            logger.warning("guardian: cannot be started; trying again in {:g} s: {}", REST_S, str(error))
            self._say("done")  # to one that runs and cannot be watched
            self._release()
            self._loop.after(REST_S, self._start_again)

    def _start(self) -> None:
        self._socket, peer = socket.socketpair()
        with peer, fork_lock:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(worker_file("guardian.py")), str(os.getpid())],
                stdin=peer.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={name: value for name, value in os.environ.items() if name != "REKINDLE_SYSTEM"},
                cwd="/",
                start_new_session=True,
            )
        self._pid, process.returncode = process.pid, 0  # reaped by its pidfd
        # Not as an argument: other users could read it, and start processes that seem to be ours.
        self._say(self._mark)
        self._say_cgroup()
        self._say_lease()
        self._pidfd = os.pidfd_open(self._pid)
        self._loop.watch(self._pidfd, self._ended)

    def _ended(self) -> None:
        self._loop.unwatch(self._pidfd)
        # Posted: a new descriptor may get the number of one that a handler has just closed, and a
        # pending report about the closed one would be taken for the new one.
        self._loop.post(self._restart)

    def _restart(self) -> None:
        """The guardian ended before the supervisor: start another one, after a rest if that repeats."""
        if self._is_dismissed:
            return
        self._release()
        now = time.monotonic()
        self._restarts = [at for at in self._restarts if now - at < REST_S]
        if len(self._restarts) >= MOST_RESTARTS:
            logger.error(
                "guardian: ended {} times within {:g} s; it is started again in {:g} s",
                len(self._restarts) + 1,
                REST_S,
                REST_S,
            )
            self._restarts.clear()
            self._loop.after(REST_S, self._start_again)
            return
        self._restarts.append(now)
        logger.warning("guardian: ended and is started again")
        self.start()

    def _start_again(self) -> None:
        if not self._is_dismissed:
            self.start()

    def dismiss(self) -> None:
        """All workers have ended: let the guardian exit."""
        self._is_dismissed = True
        self._say("done")
        self._release()

    def add_cgroup(self, path: Path) -> None:
        """Have everything in a control group ended, too."""
        self._cgroup = path
        self._say_cgroup()

    def _say_cgroup(self) -> None:
        if self._cgroup is not None:
            self._say(f"cgroup {self._cgroup}")

    def set_lease(self, until: float) -> None:
        """Have all workers ended at that time on CLOCK_BOOTTIME, unless a later one is set before.

        Any thread may call it: starts are refused from that time on, however busy the loop is.
        """
        self._lease = until
        self._loop.post(self._say_lease)

    def check_lease(self) -> None:
        """Refuse a start that comes after the end of the lease; it is tried again later, and not counted.

        Raises:
            OSError: workers may not run now.
        """
        if self._lease is not None and time.clock_gettime(time.CLOCK_BOOTTIME) >= self._lease:
            raise OSError(errno.EAGAIN, "the node has no lease")

    def _say_lease(self) -> None:
        if self._lease is not None:
            self._say(f"lease {self._lease:.3f}")

    @property
    def pid(self) -> int | None:
        """The guardian's, while it runs."""
        return self._pid

    def _say(self, line: str) -> None:
        if self._socket is not None:
            with suppress(OSError):
                # Without SIGPIPE, which would end a host that has not disabled it.
                self._socket.send(f"{line}\n".encode(), socket.MSG_NOSIGNAL)

    def _release(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._pidfd != -1:
            self._loop.unwatch(self._pidfd)
            poll = select.poll()
            poll.register(self._pidfd, select.POLLIN)
            if poll.poll(END_S * 1000):
                reap(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1
        elif self._pid is not None:  # it was started, and cannot be watched
            with suppress(OSError):
                os.waitpid(self._pid, 0)
        self._pid = None
