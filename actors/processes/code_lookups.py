"""Looks up which code a start runs, on a thread of its own.

The files of a command may be on a file system that hangs, and a worker may be able to replace them. So
neither the thread that watches the processes nor the one that starts them reads them. The report of an
end waits a moment for a lookup that is not done.
"""

from __future__ import annotations

from collections.abc import Callable

from ..deaths.evidence import Fingerprint
from ..runtime.lanes import Call, Lane
from ..spec.worker_spec import WorkerSpec
from .fingerprints import Fingerprints

MOST_WAITING = 1000
"""While a file system hangs, further lookups wait. Those beyond this number are not made."""

CLOSE_S = 0.2


class CodeLookups:
    """One thread that reads the files of commands and modules. Any thread may use it."""

    def __init__(self, fingerprints: Fingerprints) -> None:
        self.fingerprints = fingerprints
        self._lane = Lane("files")

    def begin(self, spec: WorkerSpec) -> Callable[[], Fingerprint | None]:
        """Look up a start; returns a function that returns None until the answer is known."""
        if self._lane.length >= MOST_WAITING:
            return Fingerprint
        found: list[Fingerprint] = []
        self._lane.post(lambda: found.append(self.fingerprints.of(spec)))
        return lambda: found[0] if found else None

    def post(self, call: Call) -> None:
        """Have a call made after the lookups that were begun before."""
        self._lane.post(call)

    def close(self) -> None:
        """End the thread; one that waits for a file system ends when it can."""
        self._lane.close(CLOSE_S)
