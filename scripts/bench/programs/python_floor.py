"""The floor where there is no C compiler: python_floor.py ARENA COUNT WORKER...

It does what floor.c does: spawns, waits on pidfds with epoll, records each death, spawns again at once.
The worker's command is given without its two arguments. It ends when its standard input is closed.
"""

import mmap
import os
import select
import signal
import sys
import time


class Floor:
    """The workers of one arena, each started again whenever it dies."""

    def __init__(self, arena: str, command: list[str]) -> None:
        self._arena = arena
        self._command = command
        self._pids: dict[int, int] = {}
        self._slots: dict[int, int] = {}
        self._poller = select.epoll()
        with open(arena, "r+b") as file:
            self._words = memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")

    def run(self, count: int) -> None:
        """Keep that many workers alive until standard input is closed."""
        self._poller.register(0, select.EPOLLIN)
        for slot in range(count):
            self._start(slot)
        while True:
            for fd, _ in self._poller.poll():
                if fd == 0:
                    self._stop_all()
                    return
                self._revive(fd)

    def _start(self, slot: int) -> None:
        argv = [*self._command, self._arena, str(slot)]
        self._pids[slot] = os.posix_spawn(argv[0], argv, os.environ)
        pidfd = os.pidfd_open(self._pids[slot])
        self._slots[pidfd] = slot
        self._poller.register(pidfd, select.EPOLLIN)

    def _revive(self, pidfd: int) -> None:
        slot = self._slots.pop(pidfd)
        self._words[slot * 8 + 3] = time.monotonic_ns()
        _, status = os.waitpid(self._pids[slot], 0)
        # Closing is not enough: a sibling that is being spawned holds a copy of the descriptor.
        self._poller.unregister(pidfd)
        os.close(pidfd)
        if os.WIFEXITED(status):
            sys.exit(f"floor: the worker of slot {slot} exited with {os.WEXITSTATUS(status)}")
        self._start(slot)

    def _stop_all(self) -> None:
        for pid in self._pids.values():
            os.kill(pid, signal.SIGKILL)
        for pid in self._pids.values():
            os.waitpid(pid, 0)


if __name__ == "__main__":
    Floor(sys.argv[1], sys.argv[3:]).run(int(sys.argv[2]))
