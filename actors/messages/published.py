"""What subscribers to topics hear."""

from __future__ import annotations

import msgspec

from ..facts.records import EventRecord
from ..facts.topic_states import State
from .events import Event


class Published(msgspec.Struct, frozen=True):
    """An event under its number. Numbers grow by one, across restarts of the supervisor too."""

    id: int
    at_wall_ms: int
    event: Event
    record: EventRecord
    """The same as text."""
    kept: bool = True
    """False: the store is away, and the event was told from memory."""


class StateChanged(msgspec.Struct, frozen=True):
    """The state of a topic; `state` is None once there is nothing left to have one."""

    topic: str
    type: str
    """worker_update, queue_update, job_update or system_update."""
    at_wall_ms: int
    state: State | None
    event_id: int | None = None
    """The event that it follows from, if it follows from one."""


class Snapshot(msgspec.Struct, frozen=True):
    """How everything is, as the first thing that a subscriber to topics hears."""

    last_id: int
    """What happened up to this event is in it; what comes later is told."""
    states: tuple[StateChanged, ...]
    recent: tuple[Published, ...] = ()
    """The latest events of the log, if the subscriber asked for events."""
