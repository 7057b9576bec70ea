"""The socket to which the workers of one executor connect.

It lies in a directory that only our user can enter. A socket without a file can be found and reached by
every user of the machine, and what a stranger sends can block the thread that accepts it.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from contextlib import suppress

from ..processes.channel import SO_PASSRIGHTS

BACKLOG = 128

LONGEST_FOLDER = 70
"""A socket's address has at most 107 bytes."""


class TaskSocket:
    """A listening socket; its directory exists until it is closed."""

    def __init__(self) -> None:
        usual = tempfile.gettempdir()
        folder = usual if len(os.fsencode(usual)) <= LONGEST_FOLDER else "/tmp"  # a name of its own, 0700
        self._folder = tempfile.mkdtemp(prefix="rekindle-", dir=folder)
        self.path = os.path.join(self._folder, "tasks")
        self.socket = socket.socket(socket.AF_UNIX)

    def listen(self) -> None:
        """Begin to accept connections.

        Raises:
            OSError: the directory is gone, or the disk is full.
        """
        with suppress(OSError):  # before Linux 6.16; only our own processes can connect
            self.socket.setsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS, 0)
        self.socket.bind(self.path)
        self.socket.listen(BACKLOG)
        self.socket.setblocking(False)

    def close(self) -> None:
        """Accept no more, and remove the directory. Safe to call twice."""
        self.socket.close()
        shutil.rmtree(self._folder, ignore_errors=True)
