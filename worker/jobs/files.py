"""What became of the files of an SQLite database, which the kernel lets go on with after they were removed.

Processes that have its log (`-wal`) open when that is removed share its index (`-shm`). Whoever came now
would begin a log anew under that index, each would read in its own what the other wrote, and the database
would be damaged by it. So nobody comes in until they have gone.
"""

from __future__ import annotations

import os

LOG_LOST = "its log was removed while processes use it; restart all of them"


def identity(path: str) -> tuple[int, int] | None:
    """Which file a name leads to, by device and number; None if to none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def is_log_lost(database: str) -> bool:
    """Whether its log is missing and the index in use; one that a crash left behind is not."""
    if os.path.exists(database + "-wal"):
        return False
    index = identity(database + "-shm")
    if index is None:
        return False
    try:
        # Not by a lock of our own: closing the file would let go of those that SQLite has on it here.
        with open("/proc/locks", "rb") as locks:
            return f":{index[1]} ".encode() in locks.read()
    except OSError:
        return False
