"""The file of a unix socket, in a folder that may belong to the user of a worker.

Its owner can put a link or another file in the place of the socket at any time. So the folder is opened past
no link of another user, and every change is made through a descriptor of the file, once it is known to be a
socket.
"""

from __future__ import annotations

import errno
import grp
import os
import pwd
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ...spec.deployment.socket_spec import SocketSpec
from ..trusted_path import opened

Identity = tuple[int, int]
"""The device and the inode of a file. While a socket is open, no other file can have those of its own."""


def make_way(path: str) -> None:
    """Remove the file of a socket that no process has open.

    Raises:
        OSError: a process listens there, or it is another kind of file.
    """
    with _folder_of(path) as (folder, name):
        try:
            found = os.lstat(name, dir_fd=folder)
        except FileNotFoundError:
            return
        if not stat.S_ISSOCK(found.st_mode):
            raise OSError(errno.EADDRINUSE, "there is a file that is not a socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.setblocking(False)
            try:
                probe.connect(path)
            except ConnectionRefusedError:
                os.unlink(name, dir_fd=folder)
                return
            except OSError:
                pass  # its backlog is full, or it is not ours to connect to
    raise OSError(errno.EADDRINUSE, "another process listens there")


def give(spec: SocketSpec, path: str, known: Identity | None = None) -> Identity:
    """Set the owner and the permissions of a unix socket, and of nothing else.

    Args:
        spec: the socket.
        path: where it is bound.
        known: the identity of its file; None: it has just been bound.

    Raises:
        OSError: they cannot be set, or another file is there.
    """
    with _folder_of(path) as (folder, name):
        file = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        found = os.fstat(file)
        if not stat.S_ISSOCK(found.st_mode) or known not in (None, _identity(found)):
            raise OSError(errno.ESTALE, f"another file was put in its place at {path}")
        itself = f"/proc/self/fd/{file}"
        if spec.owner is not None:
            user, _, group = spec.owner.partition(":")
            os.chown(itself, _user(user), _group(group))
        os.chmod(itself, spec.permissions)
        return _identity(found)
    finally:
        os.close(file)


def remove(path: str, known: Identity) -> None:
    """Remove the file of a socket, if it is still there."""
    with suppress(OSError), _folder_of(path) as (folder, name):
        if _identity(os.lstat(name, dir_fd=folder)) == known:
            os.unlink(name, dir_fd=folder)


@contextmanager
def _folder_of(path: str) -> Iterator[tuple[int, str]]:
    where, name = os.path.split(path)
    folder = opened(where or ".", os.O_PATH | os.O_DIRECTORY)
    try:
        yield folder, name
    finally:
        os.close(folder)


def _identity(found: os.stat_result) -> Identity:
    return found.st_dev, found.st_ino


def _user(name: str) -> int:
    try:
        return pwd.getpwnam(name).pw_uid if name else -1
    except KeyError:
        raise OSError(errno.EINVAL, f"there is no user {name!r}") from None


def _group(name: str) -> int:
    try:
        return grp.getgrnam(name).gr_gid if name else -1
    except KeyError:
        raise OSError(errno.EINVAL, f"there is no group {name!r}") from None
