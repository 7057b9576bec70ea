"""Pure: how often a worker may say something new about its job.

A supervisor takes a hundred frames a second from a worker and ends one that sends more, and jobs
may be a thousand times shorter than that. Whoever says little says it at once; who says much is
heard every `INTERVAL_S`, with what is true then.
"""

from __future__ import annotations

INTERVAL_S = 0.04
"""A job that takes longer than this is always told of before it begins."""

BURST = 10
"""So many in a row go out at once after a silence."""


class RateLimit:
    """A bucket of breaths that fills up with time."""

    __slots__ = ("_counted_at", "_tokens")

    def __init__(self) -> None:
        self._tokens = float(BURST)
        self._counted_at: float | None = None

    def wait_s(self, now: float) -> float:
        """Count one more; how long it has to wait before it is said."""
        since = now if self._counted_at is None else self._counted_at
        self._tokens = min(self._tokens + max(0.0, now - since) / INTERVAL_S, BURST) - 1
        self._counted_at = now
        return max(0.0, -self._tokens * INTERVAL_S)
