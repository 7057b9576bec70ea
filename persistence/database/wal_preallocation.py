"""Room in SQLite's write-ahead log, made before it is needed.

A log that grows has its new length written with every sync, which takes half as long again: 0.15 of the
3 ms for which a worker is down. One that has been in use for a while grows no more: SQLite begins it
anew whenever all of it is in the database. So a new one is given that length at once. What lies behind
the last frame SQLite takes for what is left of former ones, and zeros are no frame.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

PIECE = 4096
"""Written in pieces of a page: the kernel keeps what was written at once as one, and is slower then at
writing a little into it (0.2 ms for a death's frames, against 0.1)."""

PLENTY = 16
"""So many times what is taken has to be free: a disk that is nearly full has none to spare."""


def make_room(log: Path, length: int) -> None:
    """Lengthen the log, if it is shorter; where that cannot be done it is only slower.

    For whoever has begun to write, as nobody else does meanwhile. SQLite has no locks on this file that
    would go when it is closed here.
    """
    with suppress(OSError):
        descriptor = os.open(log, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            _lengthen(descriptor, length)
        finally:
            os.close(descriptor)


def _lengthen(descriptor: int, length: int) -> None:
    begin = os.fstat(descriptor).st_size
    if begin >= length or not _is_plenty(descriptor, length):
        return
    nothing = bytes(PIECE)
    try:
        for at in range(begin, length, PIECE):
            os.pwrite(descriptor, nothing, at)
        os.fdatasync(descriptor)
    except OSError:
        os.ftruncate(descriptor, begin)


def _is_plenty(descriptor: int, length: int) -> bool:
    found = os.fstatvfs(descriptor)
    return found.f_bavail * found.f_frsize > PLENTY * length
