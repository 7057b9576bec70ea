"""The socket's place in the file system, and that nobody else can tamper with it.

Everything is done through one descriptor of the directory: what was checked is what is used,
whatever becomes of the path meanwhile. It also frees us from the 107 bytes of a socket's path.
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
    """A listening unix socket in a directory of ours, until it is removed."""

    def __init__(self, directory: Path, *, replace_stale: bool) -> None:
        """Create the directory if it is missing, check it, and bind the socket in it.

        Args:
            directory: where `control.sock` shall be.
            replace_stale: replace the socket file of a server that is dead; only whoever
                holds the lock of this directory's store may say so.

        Raises:
            UnsafePathError: somebody else could tamper with the directory or the socket.
            GatewayError: there is a socket already, or none can be made.
        """
        self.path = directory / SOCKET_NAME
        self._directory = open_state_directory(directory)
        try:
            self._clear(replace_stale)
            self.socket = _bind(self._directory, self.path)
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
        found = _look(self._directory)
        return None if found is None else (found.st_dev, found.st_ino)

    def _clear(self, replace_stale: bool) -> None:
        found = _look(self._directory)
        if found is None:
            return
        if not stat.S_ISSOCK(found.st_mode):
            kind = "a symbolic link" if stat.S_ISLNK(found.st_mode) else "not a socket"
            raise UnsafePathError(f"{self.path} is {kind}; remove it if nothing needs it")
        if found.st_uid != os.geteuid():
            raise UnsafePathError(f"{self.path} belongs to another user (uid {found.st_uid})")
        if _answers(self._directory):
            raise GatewayError(f"{self.path} is in use: another supervisor answers there")
        if not replace_stale:
            raise GatewayError(f"{self.path} was left by a server that is dead; remove it")
        os.unlink(SOCKET_NAME, dir_fd=self._directory)


def _look(directory: int) -> os.stat_result | None:
    try:
        return os.stat(SOCKET_NAME, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _through(directory: int) -> str:
    """The socket's path by way of the descriptor."""
    return f"/proc/self/fd/{directory}/{SOCKET_NAME}"


def _answers(directory: int) -> bool:
    """Whether somebody listens on the socket that is there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(_through(directory))
        except BlockingIOError:
            return True  # its queue is full, so there is one
        except OSError:
            return False
    return True


def _bind(directory: int, path: Path) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Linux gives the file the mode of the unbound socket: it never has a wider one. (umask would
        # be the whole process's, and that is our host's.)
        os.fchmod(listening.fileno(), 0o600)
        listening.bind(_through(directory))
        found = _look(directory)
        if found is None or stat.S_IMODE(found.st_mode) & 0o177:
            raise UnsafePathError(f"{path} could not be made private")
    except OSError as error:
        listening.close()
        raise GatewayError(f"{path} cannot be bound: {error.strerror}") from error
    except BaseException:
        listening.close()
        raise
    return listening
