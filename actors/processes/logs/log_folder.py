"""The folder of a log file: it is opened once, and every name is looked up in it.

The names in it may be another user's: a symbolic link, a second link to another file, or a pipe without a
reader. None of them is written to. A folder in which every user can rename files is refused.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ...errors import RekindleError
from ..trusted_path import opened

FOLDER_MODE = 0o750

ROTATED = re.compile(r"\.\d{8}-\d{6}-\d{3}(\.gz)?")
"""What is appended to the name of a log file when it is rotated: the time, in UTC."""

PART = ".part"
"""What a compressed file is called until it is whole."""


class LogFileError(RekindleError, OSError):
    """A log file cannot be written."""

    def __str__(self) -> str:
        return str(self.args[0])


class LogFolder:
    """The folder of one log file."""

    def __init__(self, descriptor: int, path: str) -> None:
        self._descriptor = descriptor
        self._path = path
        self._name = os.path.basename(path)

    def opened(self, mode: int) -> int:
        """A descriptor of the log file for appending; it is created if it is missing.

        Raises:
            LogFileError: it is not a regular file of this user, or cannot be opened.
        """
        flags = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            descriptor = self._created(self._name, flags, mode)
        except OSError as error:
            raise self._error(error) from None
        reason = _unsafe(os.fstat(descriptor))
        if reason is not None:
            os.close(descriptor)
            raise LogFileError(f"{self._path} {reason}")
        return descriptor

    def has(self, found: os.stat_result) -> bool:
        """Whether that file still has the name of the log file."""
        try:
            now = os.stat(self._name, dir_fd=self._descriptor, follow_symlinks=False)
        except OSError:
            return False
        return (now.st_dev, now.st_ino) == (found.st_dev, found.st_ino)

    def rotate(self, at: str) -> str:
        """Give the log file a name with a time, later than those of all other rotated files."""
        newest = max(self.rotated(), default="")
        name = f"{self._name}.{at}"
        if name <= newest:
            name = _next(newest)
        os.rename(self._name, name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        return name

    def rotated(self) -> dict[str, bool]:
        """The rotated files, oldest first, and whether each is compressed; the names are without `.gz`."""
        names = sorted(name for name in os.listdir(self._descriptor) if self._is_rotated(name))
        return {name.removesuffix(".gz"): name.endswith(".gz") for name in names}

    def parts(self) -> list[str]:
        """Compressed files that a killed supervisor did not finish."""
        return [
            name
            for name in os.listdir(self._descriptor)
            if name.endswith(PART) and self._is_rotated(name.removesuffix(PART))
        ]

    def remove(self, name: str) -> None:
        """Delete a file, if it exists."""
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._descriptor)

    def source(self, name: str) -> int:
        """A descriptor of a rotated file for reading."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        descriptor = os.open(name, flags, dir_fd=self._descriptor)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise LogFileError(f"{name} is not a regular file")
        return descriptor

    def target(self, name: str, mode: int) -> int:
        """A descriptor of a new file for writing."""
        self.remove(name)
        return self._created(name, os.O_WRONLY | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)

    def replace(self, name: str, by: str) -> None:
        """Put one file in the place of another."""
        os.replace(by, name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def _created(self, name: str, flags: int, mode: int) -> int:
        try:
            descriptor = os.open(name, flags | os.O_CREAT | os.O_EXCL, mode, dir_fd=self._descriptor)
        except FileExistsError:
            if flags & os.O_EXCL:
                raise
            return os.open(name, flags, dir_fd=self._descriptor)
        os.fchmod(descriptor, mode)  # whatever the umask is
        return descriptor

    def _is_rotated(self, name: str) -> bool:
        begins = name.startswith(self._name)
        return begins and ROTATED.fullmatch(name, len(self._name)) is not None

    def _error(self, error: OSError) -> LogFileError:
        if os.path.islink(self._path):
            return LogFileError(f"{self._path} is a symbolic link")
        return LogFileError(f"{self._path}: {error.strerror}")


@contextmanager
def folder_of(path: str) -> Iterator[LogFolder]:
    """The folder of a log file, created if it is missing.

    Raises:
        LogFileError: it cannot be created or opened, or every user can rename files in it.
    """
    where = os.path.dirname(path) or "."
    try:
        descriptor = opened(where, os.O_RDONLY | os.O_DIRECTORY, folders=FOLDER_MODE)
    except OSError as error:
        raise LogFileError(f"{where}: {error.strerror}") from None
    try:
        mode = os.fstat(descriptor).st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise LogFileError(f"{where} is writable by every user: chmod o-w {where}")
        yield LogFolder(descriptor, path)
    finally:
        os.close(descriptor)


def check(path: str) -> None:
    """Check a log file before it is needed; nothing is created.

    Raises:
        LogFileError: it could not be opened.
    """
    where = os.path.dirname(path) or "."
    if not os.path.isdir(where):
        _check_parent(where)
        return
    if (reason := denial(where)) is not None:
        raise LogFileError(f"{where}: {reason}")
    with folder_of(path):
        pass
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if stat.S_ISLNK(found.st_mode):
        raise LogFileError(f"{path} is a symbolic link")
    if (reason := _unsafe(found)) is not None:
        raise LogFileError(f"{path} {reason}")


def _check_parent(where: str) -> None:
    there = where
    while not os.path.exists(there):
        there = os.path.dirname(there) or "."
    if not os.path.isdir(there):
        raise LogFileError(f"{there} is not a folder")
    if (reason := denial(there)) is not None:
        raise LogFileError(f"{where} cannot be created: {reason}")


def denial(folder: str | os.PathLike[str]) -> str | None:
    """Why no file can be created in a folder, in the kernel's words; None if one can."""
    if os.access(folder, os.W_OK | os.X_OK):
        return None
    is_read_only = os.statvfs(folder).f_flag & os.ST_RDONLY
    return os.strerror(errno.EROFS if is_read_only else errno.EACCES)


def _unsafe(found: os.stat_result) -> str | None:
    """Why a file must not be written to."""
    if not stat.S_ISREG(found.st_mode):
        return "is not a regular file"
    if found.st_uid != os.geteuid():
        return f"belongs to another user (uid {found.st_uid})"
    return "has a second name (a hard link)" if found.st_nlink > 1 else None


def _next(name: str) -> str:
    """The name of a rotated file one millisecond later; the seconds need not be those of a clock."""
    begin, _, number = name.rpartition("-")
    ms = int(number) + 1
    if ms < 1000:
        return f"{begin}-{ms:03}"
    begin, _, seconds = begin.rpartition("-")
    return f"{begin}-{int(seconds) + 1:06}-000"
