"""Pure: the deaths of a worker, and where that is known from."""

from __future__ import annotations

import msgspec

from ..facts.records import DeathRecord


class WorkerHistory(msgspec.Struct, frozen=True, kw_only=True):
    """The persisted deaths of a worker, newest first."""

    id: str
    deaths: tuple[DeathRecord, ...]
    source: str = ""
    """Where this comes from, in a sentence, if not from this supervisor alone."""
