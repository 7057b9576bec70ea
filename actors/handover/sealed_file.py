"""The file in memory that carries the hand-over document: sealed, and only ever inherited."""

from __future__ import annotations

import fcntl
import os
import stat

from .document import HandOverError

SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
MOST_BYTES = 256 * 1024 * 1024
_NAME = "rekindle-hand-over"


def sealed(data: bytes) -> int:
    """A descriptor of a new file with this content, which can no longer be changed."""
    file = os.memfd_create(_NAME, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(file, view) :]
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, SEALS)
    except BaseException:
        os.close(file)
        raise
    return file


def read_sealed(file: int) -> bytes:
    """The content of such a file.

    Raises:
        HandOverError: it is not one: another kind of file, of another user, or one that can be changed.
    """
    try:
        found = os.fstat(file)
        name = os.readlink(f"/proc/self/fd/{file}")
    except OSError as error:
        raise HandOverError(f"there is no hand-over document: {error.strerror}") from None
    if not stat.S_ISREG(found.st_mode) or not name.startswith(f"/memfd:{_NAME}"):
        raise HandOverError("the hand-over document is not a file in memory")
    if found.st_uid != os.geteuid():
        raise HandOverError("the hand-over document belongs to another user")
    if fcntl.fcntl(file, fcntl.F_GET_SEALS) & SEALS != SEALS:
        raise HandOverError("the hand-over document is not sealed: it may have been tampered with")
    if found.st_size > MOST_BYTES:
        raise HandOverError(f"the hand-over document has more than {MOST_BYTES} bytes")
    return os.pread(file, found.st_size, 0)
