"""One contender's run: the queue is filled first, then its workers are let loose and watched.

The rate is taken between the first and the last look at which some jobs were done, so what it takes
to start the workers, which differs a lot, is left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

_GLANCE_S = 0.1
"""A look counts all jobs, which takes time from those who do them."""

_NO_PROGRESS_S = 10.0
"""After so long without a result the rest counts as lost."""


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
    """Look until all is done, or nothing more is; the seconds from the first to the last, and the rate."""
    first = last = (time.monotonic() + 6 * _NO_PROGRESS_S, 0)
    while last[1] < jobs and time.monotonic() < last[0] + _NO_PROGRESS_S:
        count, now = done(), time.monotonic()
        if count > last[1]:
            first, last = first if first[1] else (now, count), (now, count)
        time.sleep(_GLANCE_S)
    seconds = max(last[0] - first[0], _GLANCE_S)
    return seconds, (last[1] - first[1]) / seconds
