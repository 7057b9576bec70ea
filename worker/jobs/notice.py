"""Wakes the workers that wait for jobs of an SQLite file, whichever process adds them.

SQLite has no notifications, so each queue has a named pipe beside the database. A process that adds jobs
writes one byte to it after its commit; one of the waiting workers takes the byte, looks for jobs, and passes
the byte on when it has claimed one, so that the next worker looks too. One byte is enough however many jobs
there are, and a second one is not written while the first is unread. Without a waiting worker nothing is
open to write to. A notice that gets lost costs time, not a job: workers also look every few seconds.
"""

from __future__ import annotations

import array
import fcntl
import os
import select
import stat
import termios
from collections.abc import Iterable
from contextlib import suppress

from .database_files import identity

SUFFIX = ".wake-"


def notify(database: str, queues: Iterable[str]) -> None:
    """Wake a worker that waits for jobs of one of these queues; called after the commit. Never raises."""
    for queue in set(queues):
        with suppress(OSError):
            pipe = _open(database + SUFFIX + queue, os.O_WRONLY)
            try:
                if not _is_unread(pipe):
                    os.write(pipe, b"\n")
            finally:
                os.close(pipe)


def notify_all(database: str) -> None:
    """Wake workers of every queue: jobs of any of them may have become due. Never raises."""
    folder, name = os.path.split(os.path.abspath(database))
    with suppress(OSError):
        beside = [each for each in os.listdir(folder) if each.startswith(name + SUFFIX)]
        notify(database, (each.removeprefix(name + SUFFIX) for each in beside))


def remove_notices(database: str) -> None:
    """Remove the pipes, which programs that copy a folder stumble over; workers create them again."""
    folder, name = os.path.split(os.path.abspath(database))
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(name + SUFFIX) and stat.S_ISFIFO(
                entry.stat(follow_symlinks=False).st_mode
            ):
                os.unlink(entry)


class Notices:
    """The named pipes of the queues that one thread waits for."""

    def __init__(self, database: str, queues: Iterable[str]) -> None:
        """Open the pipes, and create missing ones.

        Raises:
            OSError: the folder or the file system does not allow it.
        """
        self._database = database
        self._pipes: dict[int, str] = {}
        self._taken: set[str] = set()
        try:
            for queue in queues:
                self._pipes[_created(database + SUFFIX + queue)] = queue
        except OSError:
            self.close()
            raise

    def wait(self, seconds: float, interruption: int) -> bool:
        """Whether there was a notice within this time; not if the descriptor `interruption` is readable."""
        poll = select.poll()
        for pipe in (*self._pipes, interruption):
            poll.register(pipe, select.POLLIN)
        readable = {descriptor for descriptor, _ in poll.poll(seconds * 1000)}
        if interruption in readable:
            return False
        for pipe in readable:
            self._take(pipe)
        return bool(readable)

    def is_in_place(self) -> bool:
        """Whether other processes still find these pipes: they may have been removed meanwhile."""
        return all(
            identity(self._database + SUFFIX + queue) == _identity_of(pipe)
            for pipe, queue in self._pipes.items()
        )

    def pass_on(self) -> None:
        """Wake another worker for each notice that was taken: there may be more jobs than one."""
        taken, self._taken = self._taken, set()
        notify(self._database, taken)

    def close(self) -> None:
        """Close the pipes."""
        pipes, self._pipes = self._pipes, {}
        for pipe in pipes:
            os.close(pipe)

    def _take(self, pipe: int) -> None:
        with suppress(BlockingIOError):  # another worker was quicker
            if os.read(pipe, 1):
                self._taken.add(self._pipes[pipe])


def _created(path: str) -> int:
    with suppress(FileExistsError):
        os.mkfifo(path, 0o600)
    # For reading and writing: a pipe without a writer would be readable forever.
    return _open(path, os.O_RDWR)


def _open(path: str, mode: int) -> int:
    pipe = os.open(path, mode | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not stat.S_ISFIFO(os.fstat(pipe).st_mode):
        os.close(pipe)
        raise OSError(f"{path} is not a named pipe")
    return pipe


def _identity_of(descriptor: int) -> tuple[int, int]:
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino


def _is_unread(pipe: int) -> bool:
    unread = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, unread)
    return bool(unread[0])
