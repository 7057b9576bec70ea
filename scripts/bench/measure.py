"""What is asked of whatever brings workers back, and how the answers are summed up.

The floor and Rekindle are measured by these same functions, over an arena whose workers run already.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from .arena import Arena

_SETTLE_S = 0.003
"""Between two kills, so that each one finds its supervisor waiting rather than still at work."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Many times of one kind, in milliseconds."""

    median_ms: float
    p99_ms: float
    samples: int

    @classmethod
    def of(cls, nanoseconds: Sequence[int]) -> Summary:
        """Sum up; the 99th percentile is the smallest sample that is not below 99 % of them."""
        ordered = sorted(nanoseconds)
        rank = -(-99 * len(ordered) // 100)
        return cls(statistics.median(ordered) / 1e6, ordered[rank - 1] / 1e6, len(ordered))


@dataclass(frozen=True, slots=True)
class Row:
    """One number of workers: single kills, each from SIGKILL on."""

    workers: int
    running: Summary
    """Until the next incarnation's first instruction."""
    seen: Summary
    """Until the death was seen."""


def single_kills(arena: Arena, rounds: int, *, seed: int = 0) -> Row:
    """Kill one worker after another, in a random order, each when the last one is back."""
    order = random.Random(seed)
    arena.wait_until_all_run()
    revivals = []
    for _ in range(rounds):
        time.sleep(_SETTLE_S)
        revivals.append(arena.kill_and_wait(order.randrange(arena.slots)))
    return Row(
        arena.slots,
        Summary.of([revival.running_ns for revival in revivals]),
        Summary.of([revival.seen_ns for revival in revivals]),
    )


def mass_kills(arena: Arena, rounds: int) -> Summary:
    """Kill all workers at once, again and again; each time is until the last one is back."""
    arena.wait_until_all_run()
    times = []
    for _ in range(rounds):
        time.sleep(_SETTLE_S)
        times.append(arena.kill_all_and_wait())
    return Summary.of(times)
