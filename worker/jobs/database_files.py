"""What became of the files of an SQLite database, which the kernel lets go on with after they were removed.

Processes that have its log (`-wal`) open when that is removed share its index (`-shm`). Whoever came now
would begin a log anew under that index, each would read in its own what the other wrote, and the database
would be damaged by it. So nobody comes in until they have gone.
"""

from __future__ import annotations

import os

LOG_LOST = "its log was removed while processes use it; restart all of them"


def identity(path: str) -> tuple[int, int] | None:
    """Which file a name leads to, by device and number; None if to none.

    Raises:
        OSError: it cannot be told.
    """
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def is_log_lost(database: str) -> bool:
    """Whether its log is missing and the index in use; one that a crash left behind is not."""
    try:
        log, index = identity(database + "-wal"), identity(database + "-shm")
        if log is not None or index is None or not _is_locked(index[1]):
            return False
        # Whoever was just opening it made the log first, and then the index.
        return identity(database + "-wal") is None and identity(database + "-shm") == index
    except OSError:
        return False


def _is_locked(number: int) -> bool:
    # Not by a lock of our own: closing the file would let go of those that SQLite has on it here.
    with open("/proc/locks", "rb") as locks:
        return f":{number} ".encode() in locks.read()
