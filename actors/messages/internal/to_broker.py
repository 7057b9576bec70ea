"""Messages to the Broker."""

from __future__ import annotations

import msgspec

from ...facts.health_status import ShownStatus
from ...facts.jobs import JobView, QueueStats
from ...ports import Receiver
from .. import Passing, Published
from .to_supervisor import JobChanged


class Subscribe(msgspec.Struct, frozen=True):
    """Send this receiver every event from now on; with topics, a `Snapshot` and then the changes."""

    receiver: Receiver
    topics: tuple[str, ...] | None = None


class Unsubscribe(msgspec.Struct, frozen=True):
    """Stop sending to this receiver."""

    receiver: Receiver


class WorkerKnown(msgspec.Struct, frozen=True):
    """This worker exists and has this shown status; no event led to it."""

    component_id: str
    status: ShownStatus


class WorkerForgotten(msgspec.Struct, frozen=True):
    """This worker no longer exists."""

    component_id: str


class QueuesSeen(msgspec.Struct, frozen=True):
    """The figures of the queues, and the jobs that changed since the last look."""

    queues: tuple[QueueStats, ...]
    jobs: tuple[JobView, ...] = ()
    gone: tuple[int, ...] = ()
    """Jobs that were running and no longer exist."""


Notice = WorkerKnown | WorkerForgotten | JobChanged | QueuesSeen
"""Changes a state without being an event: it has no number and is not persisted.

Notices pass through the persistence actor too, so that they stay in order with the events.
"""


class Unnumbered(msgspec.Struct, frozen=True):
    """A notice or a usage sample, in its place among the events."""

    item: Notice | Passing
    at_wall_ms: int


class Publish(msgspec.Struct, frozen=True):
    """Publish these items in order."""

    items: tuple[Published | Unnumbered, ...]
    persisted_id: int
    """All events up to this number are in the store."""


BrokerMessage = Subscribe | Unsubscribe | Publish
