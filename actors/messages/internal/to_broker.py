"""What is said to the Broker, besides the events of `messages`."""

from __future__ import annotations

import msgspec

from ...facts.jobs import JobView, QueueStats
from ...ports import Receiver
from .. import Event
from . import Flush, JobChanged, KeepTogether


class Subscribe(msgspec.Struct, frozen=True):
    """Tell this receiver every event from now on; or with topics a `Snapshot`, then what changes."""

    receiver: Receiver
    topics: tuple[str, ...] | None = None


class Unsubscribe(msgspec.Struct, frozen=True):
    """Stop telling it."""

    receiver: Receiver


class EventsKept(msgspec.Struct, frozen=True):
    """All events up to this number are in the store, or were given up."""

    last_id: int


class EventsDue(msgspec.Struct, frozen=True):
    """Timer: events that came without a record have waited long enough for one."""


class EventsOverdue(msgspec.Struct, frozen=True):
    """Timer: the store may not have answered in time; events are told from memory."""


class WorkerKnown(msgspec.Struct, frozen=True):
    """There is such a worker, and this is the word for how it is; nothing happened to it."""

    component_id: str
    status: str


class WorkerForgotten(msgspec.Struct, frozen=True):
    """There is no such worker any more."""

    component_id: str


class QueuesSeen(msgspec.Struct, frozen=True):
    """How the queues are, and the jobs that have changed since the last look."""

    queues: tuple[QueueStats, ...]
    jobs: tuple[JobView, ...] = ()
    gone: tuple[int, ...] = ()
    """Jobs that were being executed, and are not there any more."""


Notice = WorkerKnown | WorkerForgotten | JobChanged | QueuesSeen
"""What changes a state without being an event: it has no number and is not kept."""

BrokerMessage = (
    Subscribe | Unsubscribe | KeepTogether | EventsKept | EventsDue | EventsOverdue | Notice | Flush | Event
)
