"""Detects removed files of an SQLite database, which processes can still use after the removal.

Processes that have the log (`-wal`) open when it is removed still share its index (`-shm`). A new process
would start a new log under that index; each side would then look in its own log for what the other wrote,
which damages the database. So no new process opens it until they have ended.
"""

from __future__ import annotations

import os

LOG_LOST = "its log was removed while processes use it; restart all of them"


def identity(path: str) -> tuple[int, int] | None:
    """The device and inode of the file at this path; None if it does not exist.

    Raises:
        OSError: it cannot be determined.
    """
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def uri_escaped(path: str) -> str:
    """The path in an URI for SQLite, which reserves three characters."""
    # The percent sign first, or the others are escaped twice.
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def is_log_lost(database: str) -> bool:
    """Whether the log is missing and the index is in use; an index that a crash left behind is not."""
    try:
        log, index = identity(database + "-wal"), identity(database + "-shm")
        if log is not None or index is None or not _is_locked(index[1]):
            return False
        # A process that is opening the database creates the log first, and then the index.
        return identity(database + "-wal") is None and identity(database + "-shm") == index
    except OSError:
        return False


def _is_locked(number: int) -> bool:
    # Not by trying to lock it: closing the file would release SQLite's own locks in this process.
    with open("/proc/locks", "rb") as locks:
        return f":{number} ".encode() in locks.read()
