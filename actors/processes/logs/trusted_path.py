"""Opens a folder without following a symbolic link of another user.

The owner of a folder on the path could put a link there at any time, and have a supervisor of root create
files wherever the link points. So every part of the path is opened in the one before, and a link is looked
at through a descriptor of itself.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

_MOST_LINKS = 40
"""The kernel's limit, too."""
_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class ForeignLinkError(OSError):
    """A symbolic link of another user stands on the path."""


def opened_folder(path: str, mode: int) -> int:
    """A descriptor of a folder; what is missing of its path is created with this mode.

    Raises:
        ForeignLinkError: a symbolic link on the way belongs to neither us nor root.
        OSError: it cannot be created or opened.
    """
    here = os.open("/", _LOOK | os.O_DIRECTORY)
    parts = _parts(os.path.abspath(path))
    links = 0
    try:
        while parts:
            there = _looked_at(parts.pop(), here, mode)
            found = os.fstat(there)
            if not stat.S_ISLNK(found.st_mode):
                os.close(here)
                here = there
                continue
            links += 1
            target = _target(there, found, links)
            parts += _parts(target)
            if target.startswith("/"):
                os.close(here)
                here = os.open("/", _LOOK | os.O_DIRECTORY)
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=here)
    finally:
        os.close(here)


def _parts(path: str) -> list[str]:
    """The parts of a path, the first one last."""
    return [part for part in reversed(path.split("/")) if part and part != "."]


def _looked_at(name: str, folder: int, mode: int) -> int:
    try:
        return os.open(name, _LOOK, dir_fd=folder)
    except FileNotFoundError:
        with suppress(FileExistsError):
            os.mkdir(name, mode, dir_fd=folder)
        return os.open(name, _LOOK, dir_fd=folder)


def _target(link: int, found: os.stat_result, links: int) -> str:
    try:
        if found.st_uid not in (0, os.geteuid()):
            raise ForeignLinkError(errno.EACCES, f"symbolic link of another user (uid {found.st_uid})")
        if links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        return os.readlink("", dir_fd=link)
    finally:
        os.close(link)
