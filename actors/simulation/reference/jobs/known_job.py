"""Pure: what follows for one job from what has happened to it."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...scenarios.jobs.job_entries import JobAdded

Incarnation = tuple[str, int]
"""A worker and a generation."""


@dataclass(slots=True)
class KnownJob:
    """What follows for one job."""

    number: int
    queue: str
    priority: int
    due_ms: int
    key: str | None = None
    timeout_ms: int | None = None
    expires_ms: int | None = None
    after: set[int] = field(default_factory=set)
    """The jobs that it waits for."""
    batch: int | None = None
    ends_batch: int | None = None
    batch_counts: dict[str, int] | None = None
    """How the jobs of the batch before it ended."""
    state: str = "pending"
    attempts: int = 0
    crashes: int = 0
    errors: int = 0
    holder: Incarnation | None = None
    """The process that claimed it last."""
    life: int = 0
    """The life of the supervisor in which it was claimed last."""
    claimed_at: float = 0.0
    claimed_ms: int = 0
    """The same on the wall clock."""
    has_begun: bool = False
    has_ended: bool = True
    """The last execution is over: it answered, or its process ended."""
    is_alone: bool = False
    is_cancelled: bool = False
    """An operator cancelled it while it was executed: it ends as cancelled, whatever its execution does."""
    cancelled_at: float = 0.0
    checkpoint: str | None = None
    """The last that was accepted, until the job is done."""
    blamed_for: set[Incarnation] = field(default_factory=set)

    @classmethod
    def of(cls, entry: JobAdded) -> KnownJob:
        """A job that was just put into its queue."""
        waits = bool(entry.after) or entry.ends_batch is not None
        return cls(
            entry.job,
            entry.queue,
            entry.priority,
            entry.due_ms,
            entry.key,
            entry.timeout_ms,
            entry.expires_ms,
            set(entry.after),
            entry.batch,
            entry.ends_batch,
            state="waiting" if waits else "pending",
        )

    @property
    def rank(self) -> tuple[int, int, int]:
        """Its place in the queue."""
        return self.priority, self.due_ms, self.number

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""
        return self.state in ("pending", "running", "waiting")

    def is_over(self, wall_ms: int) -> bool:
        """Whether its first execution should have begun by now."""
        return self.attempts == 0 and self.expires_ms is not None and self.expires_ms <= wall_ms

    def takes_too_long(self, wall_ms: int) -> bool:
        """Whether its execution should have ended by now."""
        return self.timeout_ms is not None and self.claimed_ms + self.timeout_ms <= wall_ms
