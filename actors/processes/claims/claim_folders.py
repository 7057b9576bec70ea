"""The folders of the sockets on which workers exchange their jobs: in the folder for temporary files, where
paths are short enough for a socket.

A supervisor that is killed leaves its folder behind; the next one of the same user removes it.
"""

from __future__ import annotations

import os
import shutil
import socket
import stat
import tempfile
import time
from contextlib import suppress

SOCKET_NAME = "claims"
PREFIX = "rekindle-"
YOUNGEST_S = 60.0
"""A folder that is younger may belong to a supervisor that is about to listen."""


def new_folder() -> str:
    """Create a folder, and remove those that killed supervisors left.

    Raises:
        OSError: it cannot be created.
    """
    with suppress(OSError):
        remove_stale()
    return tempfile.mkdtemp(prefix=PREFIX)


def remove_stale() -> None:
    """Remove the folders of this user in whose socket no process listens."""
    with os.scandir(tempfile.gettempdir()) as entries:
        found = [entry.path for entry in entries if entry.name.startswith(PREFIX)]
    for folder in found:
        with suppress(OSError):
            if _is_stale(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_stale(folder: str) -> bool:
    """Whether it is a folder of ours that has nothing but a socket without a listener."""
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        return False
    path = os.path.join(folder, SOCKET_NAME)
    is_young = time.time() - status.st_mtime < YOUNGEST_S
    if is_young or os.listdir(folder) != [SOCKET_NAME] or not stat.S_ISSOCK(os.lstat(path).st_mode):
        return False
    with socket.socket(socket.AF_UNIX) as client:
        client.setblocking(False)
        try:
            client.connect(path)
        except ConnectionRefusedError:
            return True
    return False
