"""One contender's run: the queue is filled first, then its workers are let loose and watched.

The rate is taken between the first and the last look at which some jobs were done, so what it takes
to start the workers, which differs a lot, is left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

_GLANCE_S = 0.02
_DEADLINE_S = 300.0


@dataclass(frozen=True, slots=True)
class Result:
    """What a contender did."""

    name: str
    jobs: int
    seconds: float
    rate: float
    lost: int
    """Jobs without a result at the end."""
    repeated: int
    """Executions beyond the first of a job, where that can be told."""


def watch(done: Callable[[], int], jobs: int) -> tuple[float, float]:
    """Look until all is done; the seconds from the first job to the last, and the rate in between."""
    deadline = time.monotonic() + _DEADLINE_S
    first: tuple[float, int] | None = None
    while True:
        count, now = done(), time.monotonic()
        if count and first is None:
            first = (now, count)
        if count >= jobs and first is not None:
            seconds = now - first[0]
            return seconds, (count - first[1]) / seconds if seconds else float("inf")
        if now > deadline:
            raise TimeoutError(f"only {count} of {jobs} jobs were done in {_DEADLINE_S:g} s")
        time.sleep(_GLANCE_S)
