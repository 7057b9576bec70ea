"""The lock on a state directory: one supervisor at a time, and no files that another user planted."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from rekindle.actors import StoreOwnedError
from rekindle.actors.gateways.gateway_errors import GatewayError, UnsafePathError
from rekindle.actors.gateways.state_directory import open_state_directory

from ...state_files import DATABASE_NAME, LOCK_NAME, UNSAVED


class StateLock:
    """Holds the state directory; the kernel releases the lock when the process ends, however it ends."""

    def __init__(self, directory: Path, inherited: int | None = None) -> None:
        """Describe it; the former program of this process may hold the lock by a descriptor already."""
        self._directory = directory
        self._descriptor = -1 if inherited is None else inherited

    @property
    def descriptor(self) -> int:
        """The descriptor that holds the lock."""
        return self._descriptor

    def __enter__(self) -> Self:
        """Take the lock. Check first, before anything is written, that no other user can write there.

        Raises:
            StoreOwnedError: another supervisor holds it; the text names its pid.
            UnsafePathError: another user can write to the directory, or the database is a symbolic link.
            GatewayError: the directory cannot be created or opened, or the lock file cannot be written.
        """
        if self._descriptor != -1:
            return self
        directory = open_state_directory(self._directory)
        try:
            self._refuse_links(directory)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._descriptor = os.open(LOCK_NAME, flags, 0o600, dir_fd=directory)
        finally:
            os.close(directory)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            noted = os.pread(self._descriptor, 20, 0).decode(errors="replace")
            holder = noted.partition("\n")[0] or "unknown"
            os.close(self._descriptor)
            raise StoreOwnedError(
                f"another supervisor (pid {holder}) uses the state directory {self._directory}"
            ) from None
        # For people to read; only the lock itself counts.
        try:
            os.truncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            os.close(self._descriptor)
            raise GatewayError(f"cannot write {self._directory / LOCK_NAME}: {error.strerror}") from error
        return self

    def note_unsaved(self, records: int) -> None:
        """Leave for `rekindle shutdown` how many records were lost; the next supervisor removes it.

        The file has a block already, so this works on most file systems that are full.
        """
        with suppress(OSError):
            os.pwrite(self._descriptor, f"{os.getpid()}\n{UNSAVED}{records}\n".encode(), 0)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    def _refuse_links(self, directory: int) -> None:
        """Refuse a database, or a file that SQLite keeps beside it, that is a symbolic link."""
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.name.startswith(DATABASE_NAME) and entry.is_symlink():
                    path = self._directory / entry.name
                    raise UnsafePathError(f"{path} is a symbolic link; links are not followed here")
