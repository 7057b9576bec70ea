"""Pure: what happens to jobs, as entries of a history; only in virtual time."""

from __future__ import annotations

from .history_entry import HistoryEntry


class JobAdded(HistoryEntry, frozen=True, gc=False):
    """A job was put into a queue; it is due at that time of the wall clock."""

    job: int
    queue: str
    priority: int
    due_ms: int


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


class JobKept(HistoryEntry, frozen=True, gc=False):
    """A job as it is in the store, read from outside."""

    job: int
    state: str
    attempts: int
    crash_count: int
    checkpoint: str | None = None


class JobCancelAsked(HistoryEntry, frozen=True, gc=False):
    """An operator cancelled a job; the store answered with its state from now on."""

    job: int
    state: str


class QueuePaused(HistoryEntry, frozen=True, gc=False):
    """A queue was paused, without end or until that time of the wall clock."""

    queue: str
    until_ms: int | None = None


class QueueResumed(HistoryEntry, frozen=True, gc=False):
    """The pause of a queue was ended."""

    queue: str
