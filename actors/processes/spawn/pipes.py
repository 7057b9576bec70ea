"""The descriptors of a process: output pipes, a channel, a file for its crash dump."""

from __future__ import annotations

import fcntl
import os
import socket

from ...spec.surroundings import NULL
from ..channel import WorkerChannel
from ..notify_socket import NotifySocket
from ..trusted_path import opened

CRASH_DUMP_SIZE = 64 * 1024
BEGUN_JOBS_SIZE = 4 * 1024
"""The part behind the crash dump: the jobs that the worker has begun (`worker/begun_jobs.py`)."""


class Descriptors:
    """Both ends of the descriptors of a process."""

    def __init__(self) -> None:
        self.ours: list[int] = []
        self.theirs: list[int] = []
        self.channel: WorkerChannel | None = None
        self.peer: socket.socket | None = None
        self.stdin = -1
        """The file that the process reads; -1: nothing."""
        self.notify: NotifySocket | None = None

    @classmethod
    def with_output(cls) -> Descriptors:
        """The pipes of stdout and stderr, which every process gets.

        Raises:
            OSError: too many open files.
        """
        descriptors = cls()
        try:
            for _ in ("stdout", "stderr"):
                read, write = os.pipe2(os.O_CLOEXEC)
                descriptors.ours.append(read)
                descriptors.theirs.append(write)
                os.set_blocking(read, False)
        except BaseException:
            descriptors.close()
            raise
        return descriptors

    def open_stdin(self, path: str) -> None:
        """Open what the process reads from its standard input.

        Raises:
            OSError: the file cannot be opened, or is behind a link by which another user would read it.
        """
        if path != NULL:
            try:
                # Without waiting for the writer of a pipe.
                self.stdin = opened(path, os.O_RDONLY | os.O_NONBLOCK)
            except OSError as error:
                raise OSError(error.errno, f"{error.strerror}, for its stdin", path) from None
            os.set_blocking(self.stdin, True)

    def close(self) -> None:
        """Close all of them."""
        self.close_ours()
        self.close_theirs()

    def close_theirs(self) -> None:
        """Close the child's ends. While the channel's is open here, its end cannot be detected."""
        for descriptor in self.theirs:
            os.close(descriptor)
        if self.stdin != -1:
            os.close(self.stdin)
        if self.peer is not None:
            self.peer.close()

    def close_ours(self) -> None:
        """Close our ends."""
        for descriptor in self.ours:
            os.close(descriptor)
        for socket_ in (self.channel, self.notify):
            if socket_ is not None:
                socket_.close()


def crash_dump_file() -> int:
    """A file in memory that cannot grow, however much a worker writes to it."""
    file = os.memfd_create("rekindle-last-words", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(file, CRASH_DUMP_SIZE + BEGUN_JOBS_SIZE)
    seals = fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)
    return file
