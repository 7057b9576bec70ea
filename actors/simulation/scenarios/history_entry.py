"""Pure: what all entries of a history have."""

from __future__ import annotations

import msgspec


class HistoryEntry(msgspec.Struct, frozen=True, gc=False, tag=True, omit_defaults=True):
    """Something that happened."""

    at: float
    """Seconds of the scenario."""
