"""Pure: what is set for a queue as a whole."""

from __future__ import annotations

import msgspec


class QueuePause(msgspec.Struct, frozen=True, kw_only=True):
    """No job of the queue is started; jobs that were started before run to their end."""

    queue: str
    at_wall_ms: int
    until_wall_ms: int | None = None
    """None: until it is resumed."""
    reason: str = ""
