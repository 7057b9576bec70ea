"""What subscribers to topics receive."""

from __future__ import annotations

import msgspec

from ..facts.records import EventRecord
from ..facts.topic_states import State
from .events import Event


class Published(msgspec.Struct, frozen=True):
    """A numbered event. Numbers increase by one, also across restarts of the supervisor."""

    id: int
    at_wall_ms: int
    event: Event
    record: EventRecord
    """The same as text."""
    kept: bool = True
    """False: the store is unavailable, and the event was published from memory."""


class StateChanged(msgspec.Struct, frozen=True):
    """The state of a topic; `state` is None once its subject is gone."""

    topic: str
    type: str
    """worker_update, queue_update, job_update or system_update."""
    at_wall_ms: int
    state: State | None
    event_id: int | None = None
    """The event that caused it, if any."""


class Snapshot(msgspec.Struct, frozen=True):
    """All current states: the first message to a subscriber."""

    last_id: int
    """The last event that the states include; later ones follow."""
    states: tuple[StateChanged, ...]
    recent: tuple[Published, ...] = ()
    """The latest events of the log, if the subscriber asked for events."""
