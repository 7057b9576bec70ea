"""One supervisor a state directory, whatever its database is."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from rekindle.actors import StoreOwnedError

NAME = "supervisor.lock"


class StateLock:
    """Holds the state directory; the kernel lets go of it with the process, however that ends."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._descriptor = -1

    def __enter__(self) -> Self:
        """Take it.

        Raises:
            StoreOwnedError: another supervisor has it; the text names its pid.
            OSError: the directory cannot be made or written.
        """
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._descriptor = os.open(self._directory / NAME, flags, 0o600)
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
