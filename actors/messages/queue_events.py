"""Events about a queue as a whole."""

from __future__ import annotations

import msgspec


class QueuePaused(msgspec.Struct, frozen=True):
    """No further job of a queue is started."""

    queue: str
    reason: str
    for_s: float | None
    """None: until it is resumed."""


class QueueResumed(msgspec.Struct, frozen=True):
    """Jobs of a queue are started again: it was resumed, or its pause is over."""

    queue: str
    expired: bool = False
    """Whether the time of the pause was over."""


class PeriodicEnqueued(msgspec.Struct, frozen=True):
    """A periodic job was put into its queue."""

    name: str
    queue: str
    job_id: int
    due_wall_ms: int
    missed: int = 0
    """How many due times it stands for that were missed."""


class PeriodicMissed(msgspec.Struct, frozen=True):
    """Due times of a periodic job passed while no supervisor ran, and no job stands for them."""

    name: str
    queue: str
    times: int
    last_due_wall_ms: int


QueueEvent = QueuePaused | QueueResumed | PeriodicEnqueued | PeriodicMissed
