"""The mark of the numbers of processes that were reserved while the store could not be written.

A file beside the database with one number: no process of any worker has a higher one, unless the store says
so. It exists from the first start on and is overwritten in place, which a full disk does not prevent.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from loguru import logger

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_WIDTH = 20


class MarkFile:
    """The mark; 0 as long as the store has all of them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mark: int | None = None
        """As it was read or written last; None: there is no file yet."""

    def read(self) -> int:
        """The mark; 0 if there is none, or if it cannot be read, which is logged."""
        try:
            self._mark = int(self._path.read_bytes() or b"0") if self._is_ours() else 0
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            logger.error("store: the numbers that a former run reserved cannot be read: {}", str(error))
        return self._mark or 0

    def raise_to(self, mark: int) -> bool:
        """Make sure that it is at least this; whether that is on the disk."""
        return mark <= (self._mark or 0) or self._write(mark)

    def clear(self) -> None:
        """The store has all numbers now; take the room for the next one."""
        if self._mark != 0:
            self._write(0)

    def _is_ours(self) -> bool:
        found = self._path.lstat()
        return stat.S_ISREG(found.st_mode) and found.st_uid in (os.geteuid(), 0)

    def _write(self, mark: int) -> bool:
        with suppress(OSError):
            descriptor = os.open(self._path, _FLAGS, 0o600)
            try:
                os.pwrite(descriptor, b"%0*d\n" % (_WIDTH, mark), 0)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            self._mark = mark
            return True
        return False
