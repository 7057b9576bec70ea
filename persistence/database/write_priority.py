"""Precedence over workers at an SQLite file.

Workers that serve queues take turns at the file without a pause, one commit after the other. Whoever
waits for it in SQLite's way, by looking again after a while, would hardly ever find it free: a death
would not be written down because jobs are being done. So whoever is not a worker says that it wants
the file, and workers let it go first (`rekindle.worker.jobs.sqlite`).
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

    It is a courtesy and no lock: where it cannot be had, SQLite's own lock still does its work.
    """

    def __init__(self, database: Path | None) -> None:
        """For the file of a database; PostgreSQL has none, and needs none."""
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
            try:  # noqa: SIM105  # quicker, and a worker is down meanwhile
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            except OSError:
                pass

    def close(self) -> None:
        """Let go of the descriptor."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


_all: WeakSet[Precedence] = WeakSet()


def _forked() -> None:
    """A fork of whoever is killed meanwhile would have all workers wait for it, for as long as it lives."""
    for precedence in tuple(_all):
        precedence.close()


os.register_at_fork(after_in_child=_forked)
