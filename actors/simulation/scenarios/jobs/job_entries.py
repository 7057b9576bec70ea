"""Pure: what happens to jobs, as entries of a history; only in virtual time."""

from __future__ import annotations

from ..history_entry import HistoryEntry


class JobAdded(HistoryEntry, frozen=True, gc=False):
    """A job was put into a queue; it is due at that time of the wall clock."""

    job: int
    queue: str
    priority: int
    due_ms: int
    key: str | None = None
    timeout_ms: int | None = None
    expires_ms: int | None = None
    after: tuple[int, ...] = ()
    """The jobs that must be done before it, and were not."""
    batch: int | None = None
    ends_batch: int | None = None
    """The batch after whose end it runs; its jobs were put in before it."""


class JobClaimed(HistoryEntry, frozen=True, gc=False):
    """A process claimed a job."""

    worker: str
    generation: int
    job: int
    attempt: int
    wall_ms: int
    checkpoint: str | None = None
    """What the execution continues from."""


class JobBegun(HistoryEntry, frozen=True, gc=False):
    """A process began to execute a job that it had claimed."""

    worker: str
    generation: int
    job: int
    attempt: int


class JobSaved(HistoryEntry, frozen=True, gc=False):
    """A checkpoint of an execution reached the store, which accepted or refused it."""

    worker: str
    generation: int
    job: int
    attempt: int
    checkpoint: str
    accepted: bool


class JobAnswered(HistoryEntry, frozen=True, gc=False):
    """The end of an execution reached the store, which accepted or refused it."""

    worker: str
    generation: int
    job: int
    attempt: int
    state: str
    accepted: bool
    raised_ms: int = 0
    """When it raised, on the wall clock."""


class JobReleased(HistoryEntry, frozen=True, gc=False):
    """The supervisor released the claim of a process that ended."""

    worker: str
    generation: int
    job: int
    state: str
    crash_count: int
    counted: bool
    timed_out: bool = False
    """Whether its process was ended because the job took too long."""
    wall_ms: int = 0
    """When the supervisor learned of the end, on the wall clock."""


class JobKept(HistoryEntry, frozen=True, gc=False):
    """A job as it is in the store, read from outside."""

    job: int
    state: str
    attempts: int
    crash_count: int
    checkpoint: str | None = None
    batch_counts: str | None = None
    """How the jobs of a batch ended, as the job after it is told."""


class JobExpired(HistoryEntry, frozen=True, gc=False):
    """A job that had not begun in time was given up, at that time of the wall clock."""

    job: int
    wall_ms: int


class JobCancelAsked(HistoryEntry, frozen=True, gc=False):
    """An operator cancelled a job; the store answered with its state from now on."""

    job: int
    state: str


class QueuePauseBegan(HistoryEntry, frozen=True, gc=False, tag="QueuePaused"):
    """A queue was paused, without end or until that time of the wall clock."""

    queue: str
    until_ms: int | None = None


class QueuePauseEnded(HistoryEntry, frozen=True, gc=False, tag="QueueResumed"):
    """The pause of a queue was ended."""

    queue: str


class QueueLimited(HistoryEntry, frozen=True, gc=False):
    """A queue has these limits from now on, and no others."""

    queue: str
    concurrency: int | None = None
    rate: int | None = None
    key_concurrency: int | None = None
    key_rate: int | None = None
    per_ms: int = 1000
    """The time of both rates."""


JobEntry = (
    JobAdded
    | JobClaimed
    | JobBegun
    | JobSaved
    | JobAnswered
    | JobReleased
    | JobKept
    | JobExpired
    | JobCancelAsked
)
"""What happens to one job."""

QueueEntry = QueuePauseBegan | QueuePauseEnded | QueueLimited
"""What is set for a queue."""
