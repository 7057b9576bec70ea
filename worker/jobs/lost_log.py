"""Whether the log of an SQLite database was removed while processes use it.

They go on with the removed one, as the kernel lets them, and share its index (`-shm`). Whoever came now
would begin a log anew under that index, each would read in its own what the other wrote, and the database
would be damaged by it. So nobody comes in until they have gone.
"""

from __future__ import annotations

import os

LOST = "its log was removed while processes use it; restart all of them"


def is_lost(database: str) -> bool:
    """Whether it is: the log is missing, and its index in use. One whom a crash left behind is not."""
    if os.path.exists(database + "-wal"):
        return False
    try:
        index = os.stat(database + "-shm").st_ino
        # Not by a lock of our own: closing the file would let go of those that SQLite has on it here.
        with open("/proc/locks", "rb") as locks:
            return f":{index} ".encode() in locks.read()
    except OSError:
        return False
