"""One supervisor a state directory, whatever its database is; and nobody else's hands in it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from rekindle.actors import StoreOwnedError
from rekindle.actors.gateways.gateway_errors import UnsafePathError
from rekindle.actors.gateways.state_directory import open_state_directory

from ..config.paths import DATABASE_NAME

NAME = "supervisor.lock"


class StateLock:
    """Holds the state directory; the kernel lets go of it with the process, however that ends."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._descriptor = -1

    def __enter__(self) -> Self:
        """Take it. Before anything else is written there, see that nobody can tamper with it.

        Raises:
            StoreOwnedError: another supervisor has it; the text names its pid.
            UnsafePathError: somebody else can write to the directory, or the database is a link.
            GatewayError: the directory cannot be made or opened.
            OSError: it cannot be written.
        """
        directory = open_state_directory(self._directory)
        try:
            self._refuse_links(directory)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._descriptor = os.open(NAME, flags, 0o600, dir_fd=directory)
        finally:
            os.close(directory)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._descriptor, 20, 0).decode(errors="replace").strip() or "unknown"
            os.close(self._descriptor)
            raise StoreOwnedError(
                f"another supervisor (pid {holder}) runs with the state directory {self._directory}"
            ) from None
        # For people: the lock is what counts.
        os.truncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    def _refuse_links(self, directory: int) -> None:
        """The database and what SQLite keeps beside it must be where they seem to be."""
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.name.startswith(DATABASE_NAME) and entry.is_symlink():
                    path = self._directory / entry.name
                    raise UnsafePathError(f"{path} is a symbolic link, which is not followed")
