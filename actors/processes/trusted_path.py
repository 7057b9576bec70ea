"""Opens files and folders where another user may have put a symbolic link on the path.

A supervisor of root reads and writes in folders of the users that its workers run as. The owner of such a
folder can put a link there at any time, and would have root read or create files wherever it points. So a
link that belongs to neither root nor us may only lead to what belongs to the owner of the link. Every part of
the path is opened in the one before, and a link is looked at through a descriptor of itself, so that it
does not matter when it is exchanged.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

_MOST_LINKS = 40
"""The kernel's limit, too."""
_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


def opened(path: str | os.PathLike[str], flags: int, folders: int | None = None) -> int:
    """A descriptor of what is at a path.

    Args:
        path: the path; relative to the working directory of this process.
        flags: those of `os.open`.
        folders: the mode with which missing folders are created; None: none is.

    Raises:
        OSError: it cannot be opened, or another user's link leads to what is not that user's.
    """
    walk = _Walk(folders)
    try:
        walk.go(os.path.abspath(path))
        walk.check()
        return os.open(f"/proc/self/fd/{walk.here}", flags | os.O_CLOEXEC)
    finally:
        os.close(walk.here)


def may_be_of_others(path: str) -> bool:
    """Whether a user other than root and us can have decided what is at a path.

    That the last folder of the path is writable by every user is a mistake of its owner, not of others.
    """
    path = os.path.abspath(path)
    parts = path.split("/")
    try:
        for count in range(1, len(parts)):
            folder, entry = "/".join(parts[:count]) or "/", "/".join(parts[: count + 1])
            found = os.stat(folder)
            if not _is_trusted(found.st_uid) or _has_writers(found, is_last=entry == path):
                return True
            if not _is_trusted(os.lstat(entry).st_uid):
                return True
    except OSError:
        pass  # nothing is there, or we may not look
    return False


def _has_writers(folder: os.stat_result, *, is_last: bool) -> bool:
    """Whether users other than its owner can rename what is in a folder."""
    if folder.st_mode & stat.S_ISVTX or (is_last and folder.st_mode & stat.S_IWOTH):
        return False
    return bool(folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


class _Walk:
    """Goes along a path, one part at a time."""

    def __init__(self, folders: int | None) -> None:
        self.here = os.open("/", _LOOK)
        self._folders = folders
        self._owners: set[int] = set()
        """Of the links of other users."""
        self._links = 0

    def go(self, path: str) -> None:
        """Go along a path; the walk is then at its end."""
        parts = _parts(path)
        while parts:
            name = parts.pop()
            there = self._next(name)
            found = os.fstat(there)
            if not stat.S_ISLNK(found.st_mode):
                self._move(there)
                continue
            if _is_of_the_kernel(found):
                os.close(there)
                self._move(os.open(name, os.O_PATH | os.O_CLOEXEC, dir_fd=self.here))
                continue
            target = self._target(there)
            parts += _parts(target)
            if target.startswith("/"):
                self._move(os.open("/", _LOOK))

    def check(self) -> None:
        """Refuse what the owner of a link on the way does not own."""
        if self._owners - {os.fstat(self.here).st_uid}:
            uid = min(self._owners)
            raise OSError(errno.EACCES, f"a symbolic link of another user (uid {uid}) is on its path")

    def _move(self, there: int) -> None:
        os.close(self.here)
        self.here = there

    def _next(self, name: str) -> int:
        with suppress(FileNotFoundError):
            return os.open(name, _LOOK, dir_fd=self.here)
        if self._folders is not None:
            self.check()
            with suppress(FileExistsError):
                os.mkdir(name, self._folders, dir_fd=self.here)
        return os.open(name, _LOOK, dir_fd=self.here)

    def _target(self, link: int) -> str:
        try:
            owner = os.fstat(link).st_uid
            if not _is_trusted(owner):
                self._owners.add(owner)
            self._links += 1
            if self._links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            return os.readlink("", dir_fd=link)
        finally:
            os.close(link)


def _is_trusted(owner: int) -> bool:
    return owner in (0, os.geteuid())


def _is_of_the_kernel(link: os.stat_result) -> bool:
    """Whether it is a link of ours in /proc, such as /proc/self/fd/0, whose text need not be a path."""
    return _is_trusted(link.st_uid) and link.st_dev == os.lstat("/proc/self").st_dev


def _parts(path: str) -> list[str]:
    """The parts of a path, the first one last."""
    return [part for part in reversed(path.split("/")) if part and part != "."]
