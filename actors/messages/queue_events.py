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


QueueEvent = QueuePaused | QueueResumed
