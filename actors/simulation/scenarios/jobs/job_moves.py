"""Pure: what can be done to the queues of a scenario, as data; only in virtual time."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class JobFate(StrEnum):
    """What an execution of a job does to the worker."""

    FINISHES = "finishes"
    RAISES = "raises"
    DIES = "dies"
    """The worker dies in the middle of it."""
    DIES_EARLY = "dies_early"
    """The worker has claimed it, and dies before it begins."""
    OVERRUNS = "overruns"
    """It never ends by itself, and ignores that it is cancelled or timed out; the worker stays healthy."""
    HANGS = "hangs"
    """The worker sends nothing more and ignores requests."""
    ANSWERS_LATE = "answers_late"
    """The worker dies; a checkpoint and the result arrive afterwards: they were on their way."""


@dataclass(frozen=True, slots=True)
class Enqueue:
    """Put jobs into a queue."""

    queue: str
    jobs: int = 1
    takes_s: float = 1.0
    """How long an execution takes, or how soon it does something else."""
    does: JobFate = JobFate.FINISHES
    times: int = 1_000_000
    """How many executions do it; the later ones finish."""
    priority: int = 0
    in_s: float = 0.0
    """When they are due."""
    timeout_s: float | None = None
    """How long an execution may take; one that `finishes` ends then, every other ignores it."""
    expires_s: float | None = None
    """By when their first execution must have begun."""
    key: str | None = None
    after: int = 0
    """How many jobs they come after: the newest ones of the queue that have not ended."""
    batch: bool = False
    """As a batch: one more job runs when all of them have ended."""


@dataclass(frozen=True, slots=True)
class PauseQueue:
    """Have no job of a queue started."""

    queue: str
    for_s: float | None = None


@dataclass(frozen=True, slots=True)
class ResumeQueue:
    """End the pause of a queue."""

    queue: str


@dataclass(frozen=True, slots=True)
class CancelJob:
    """Cancel a job of a queue that has not ended."""

    queue: str
    which: int = 0
    """Counted from the oldest, and again from the beginning after the newest."""


@dataclass(frozen=True, slots=True)
class LimitQueue:
    """Limit how many jobs of a queue run at a time and start in a time; what is left out is not limited."""

    queue: str
    concurrency: int | None = None
    rate: int | None = None
    key_concurrency: int | None = None
    """The same for the jobs that have the same key."""
    key_rate: int | None = None
    per_s: float = 1.0
    """The time of both rates."""


QueueMove = Enqueue | CancelJob | PauseQueue | ResumeQueue | LimitQueue

QUEUE_MOVES: dict[str, type[QueueMove]] = {
    "enqueue": Enqueue,
    "cancel_job": CancelJob,
    "pause_queue": PauseQueue,
    "resume_queue": ResumeQueue,
    "limit_queue": LimitQueue,
}
"""Every one of them by its word."""
