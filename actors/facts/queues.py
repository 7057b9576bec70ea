"""Pure: what is set for a queue as a whole."""

from __future__ import annotations

import msgspec


class BatchAdded(msgspec.Struct, frozen=True):
    """The numbers of a new batch, its jobs, and the job at its end."""

    id: int
    job_ids: tuple[int, ...]
    callback_id: int | None


class BatchView(msgspec.Struct, frozen=True, kw_only=True):
    """A batch: how many of its jobs ended, and how."""

    id: int
    total: int
    done: int
    failed: int
    """Jobs that ended otherwise: failed, toxic, cancelled, expired."""
    callback_id: int | None
    created_at_wall_ms: int


class PeriodicPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A periodic job, as far as the store knows it."""

    name: str
    queue: str
    schedule: str
    """In words; if it changes, due times count from then on."""
    next_due_wall_ms: int


class PeriodicView(msgspec.Struct, frozen=True, kw_only=True):
    """A periodic job, and what became of its due times."""

    name: str
    queue: str
    schedule: str
    last_due_wall_ms: int
    """Up to which time its due times are dealt with; at first the time when it was declared."""
    next_due_wall_ms: int | None
    last_job_id: int | None
    """The latest job that was enqueued for it."""
    missed: int
    """How many due times passed while no supervisor ran."""


class Rate(msgspec.Struct, frozen=True):
    """So many starts in so much time."""

    count: int
    period_ms: int


class QueueLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs of a queue run at a time and start in a time, over all workers; None: any number."""

    queue: str
    concurrency: int | None = None
    rate: Rate | None = None
    key_concurrency: int | None = None
    """The same for the jobs that have the same key."""
    key_rate: Rate | None = None


class QueuePause(msgspec.Struct, frozen=True, kw_only=True):
    """No job of the queue is started; jobs that were started before run to their end."""

    queue: str
    at_wall_ms: int
    until_wall_ms: int | None = None
    """None: until it is resumed."""
    reason: str = ""
