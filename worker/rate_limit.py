"""Pure: how often a worker may report a change of its job.

A supervisor accepts a hundred frames a second from a worker and ends one that sends more, and jobs
may be a thousand times shorter than that. Rare reports are sent at once; frequent ones are combined
into one every `INTERVAL_S`.
"""

from __future__ import annotations

INTERVAL_S = 0.04
"""A job that takes longer than this is always reported before it ends."""

BURST = 10
"""How many in a row are sent at once after a silence."""


class RateLimit:
    """A token bucket."""

    __slots__ = ("_counted_at", "_tokens")

    def __init__(self) -> None:
        self._tokens = float(BURST)
        self._counted_at: float | None = None

    def wait_s(self, now: float) -> float:
        """Count one report; how long to wait before it is sent."""
        since = now if self._counted_at is None else self._counted_at
        self._tokens = min(self._tokens + max(0.0, now - since) / INTERVAL_S, BURST) - 1
        self._counted_at = now
        return max(0.0, -self._tokens * INTERVAL_S)
