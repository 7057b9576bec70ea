"""One library's run: the queue is filled, then its workers are started and observed.

The rate is measured between the first and the last check at which some jobs were done, so it excludes
the start of the workers, which differs a lot.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

_GLANCE_S = 0.1
"""Between two checks: each counts all jobs, which slows the workers down."""

_NO_PROGRESS_S = 10.0
"""After this time without a result the remaining jobs count as lost."""


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one library's run."""

    name: str
    jobs: int
    seconds: float
    rate: float
    lost: int
    """Jobs without a result at the end."""
    repeated: int
    """Executions beyond the first of a job, where the library records them."""

    def __str__(self) -> str:
        return f"{self.name:<16}{self.rate:8.0f} jobs/s; {self.lost} lost, {self.repeated} repeated"


def watch(done: Callable[[], int], jobs: int) -> tuple[float, float]:
    """Check until all jobs are done or progress ends; the seconds from first to last, and the rate."""
    first = last = (time.monotonic() + 6 * _NO_PROGRESS_S, 0)
    while last[1] < jobs and time.monotonic() < last[0] + _NO_PROGRESS_S:
        count, now = done(), time.monotonic()
        if count > last[1]:
            first, last = first if first[1] else (now, count), (now, count)
        time.sleep(_GLANCE_S)
    seconds = max(last[0] - first[0], _GLANCE_S)
    return seconds, (last[1] - first[1]) / seconds
