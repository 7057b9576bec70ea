"""A histogram of durations, such as those of commits, which one actor writes and other threads may read.

It costs two reads of the clock and one addition for each. A reader may see one that is counted but not yet
summed.
"""

from __future__ import annotations

from bisect import bisect_left

BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class CommitTimes:
    """How many commits took no longer than each bound."""

    __slots__ = ("_counts", "total_s")

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS_S) + 1)
        self.total_s = 0.0

    def took(self, seconds: float) -> None:
        """Count one commit."""
        self._counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.total_s += seconds

    def cumulative(self) -> tuple[tuple[float, int], ...]:
        """Each bound, and how many commits took no longer; the last bound is infinity."""
        counts, total = tuple(self._counts), 0
        result: list[tuple[float, int]] = []
        for bound, count in zip((*BOUNDS_S, float("inf")), counts, strict=True):
            total += count
            result.append((bound, total))
        return tuple(result)
