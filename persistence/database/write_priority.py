"""Priority over workers when writing to an SQLite file.

Workers that serve queues write to the file without a pause. SQLite waits for a lock by polling, so
another process would hardly ever find the file free, and a death would not be persisted while jobs are
executed. So a process that is not a worker announces that it wants to write, and workers let it go
first (`rekindle.worker.jobs.sqlite`).
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from weakref import WeakSet

from .database_file import open_lock, side_file

SUFFIX = ".want"


class Precedence:
    """Held for the length of a `with` block; used by one thread at a time.

    It is advisory: if it cannot be taken, SQLite's own lock still protects the file.
    """

    def __init__(self, database: Path | None) -> None:
        """For the file of a database; None for PostgreSQL, which needs no precedence."""
        self._path = None if database is None else side_file(database, SUFFIX)
        self._descriptor: int | None = None
        _all.add(self)

    def __enter__(self) -> None:
        if self._path is None:
            return
        try:
            if self._descriptor is None:
                self._descriptor = open_lock(self._path)
            fcntl.flock(self._descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor is not None:
            try:  # noqa: SIM105  # faster, and a worker is down meanwhile
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            except OSError:
                pass

    def close(self) -> None:
        """Close the descriptor."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


_all: WeakSet[Precedence] = WeakSet()


def _forked() -> None:
    """Close the descriptors in a fork: if its parent is killed, workers would wait while it lives."""
    for precedence in tuple(_all):
        precedence.close()


os.register_at_fork(after_in_child=_forked)
