"""The socket file, protected from other users.

Everything goes through one descriptor of the directory, so the directory that was checked is the one
that is used, even if the path changes meanwhile. It also avoids the limit of 107 bytes for the path
of a socket.
"""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

from ..gateway_errors import GatewayError, UnsafePathError
from ..state_directory import open_state_directory

SOCKET_NAME = "control.sock"


class SocketFile:
    """A unix socket in a directory of our own, until it is removed."""

    def __init__(self, directory: Path, *, replace_stale: bool, inherited: int | None = None) -> None:
        """Create the directory if it is missing, check it, and bind the socket in it.

        Args:
            directory: the folder of `control.sock`.
            replace_stale: replace the socket file of a dead server; only the owner of the
                lock of this directory's store may set it.
            inherited: the socket, if the former program of this process bound it.

        Raises:
            UnsafePathError: another user could tamper with the directory or the socket.
            GatewayError: the socket exists already, or cannot be created.
        """
        self.path = directory / SOCKET_NAME
        self._directory = open_state_directory(directory)
        try:
            if inherited is None:
                self._clear(replace_stale)
                self.socket = _bind(self._directory, self.path)
            else:
                self.socket = socket.socket(fileno=inherited)
            self._identity = self._found()
        except BaseException:
            os.close(self._directory)
            raise

    def remove(self) -> None:
        """Remove the file if it is still ours. Safe to call twice."""
        if self._directory < 0:
            return
        try:
            if self._found() == self._identity:
                os.unlink(SOCKET_NAME, dir_fd=self._directory)
        except OSError:
            pass  # the directory is gone, and the file with it
        finally:
            os.close(self._directory)
            self._directory = -1

    def close(self) -> None:
        """Remove the file and close the socket."""
        self.remove()
        self.socket.close()

    def _found(self) -> tuple[int, int] | None:
        found = _stat(self._directory)
        return None if found is None else (found.st_dev, found.st_ino)

    def _clear(self, replace_stale: bool) -> None:
        found = _stat(self._directory)
        if found is None:
            return
        if not stat.S_ISSOCK(found.st_mode):
            kind = "a symbolic link" if stat.S_ISLNK(found.st_mode) else "not a socket"
            raise UnsafePathError(f"{self.path} is {kind}; remove it if it is not needed")
        if found.st_uid != os.geteuid():
            raise UnsafePathError(f"{self.path} belongs to another user (uid {found.st_uid})")
        if _has_server(self._directory):
            raise GatewayError(f"{self.path} is in use by another supervisor")
        if not replace_stale:
            raise GatewayError(f"{self.path} is stale: its server is dead; remove the file")
        os.unlink(SOCKET_NAME, dir_fd=self._directory)


def _stat(directory: int) -> os.stat_result | None:
    try:
        return os.stat(SOCKET_NAME, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _path_through(directory: int) -> str:
    """The socket's path through the descriptor."""
    return f"/proc/self/fd/{directory}/{SOCKET_NAME}"


def _has_server(directory: int) -> bool:
    """Whether a server listens on the existing socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(_path_through(directory))
        except BlockingIOError:
            return True  # its queue is full, so a server exists
        except OSError:
            return False
    return True


def _bind(directory: int, path: Path) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Linux gives the file the mode of the unbound socket, so the mode is never wider. (A umask
        # would affect the whole process, which belongs to the host.)
        os.fchmod(listening.fileno(), 0o600)
        listening.bind(_path_through(directory))
        found = _stat(directory)
        if found is None or stat.S_IMODE(found.st_mode) & 0o177:
            raise UnsafePathError(f"cannot restrict {path} to its owner")
    except OSError as error:
        listening.close()
        raise GatewayError(f"cannot bind {path}: {error.strerror}") from error
    except BaseException:
        listening.close()
        raise
    return listening
