"""What is said to the Broker, besides the events of `messages`."""

from __future__ import annotations

from dataclasses import dataclass

from .internal_messages import Flush, JobChanged, KeepTogether
from .jobs import JobView, QueueStats
from .messages import Event
from .ports import Receiver


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Tell this receiver every event from now on; or with topics a `Snapshot`, then what changes."""

    receiver: Receiver
    topics: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """Stop telling it."""

    receiver: Receiver


@dataclass(frozen=True, slots=True)
class EventsKept:
    """All events up to this number are in the store, or were given up."""

    last_id: int


@dataclass(frozen=True, slots=True)
class EventsDue:
    """Timer: events that came without a record have waited long enough for one."""


@dataclass(frozen=True, slots=True)
class EventsOverdue:
    """Timer: the store may not have answered in time; events are told from memory."""


@dataclass(frozen=True, slots=True)
class WorkerKnown:
    """There is such a worker, and this is the word for how it is; nothing happened to it."""

    component_id: str
    status: str


@dataclass(frozen=True, slots=True)
class WorkerForgotten:
    """There is no such worker any more."""

    component_id: str


@dataclass(frozen=True, slots=True)
class QueuesSeen:
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
