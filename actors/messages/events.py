"""What happens to groups, jobs and ourselves; and all events together."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import msgspec

from ..facts.alert import Alert, Happening
from .worker_events import (
    ResourcesSampled,
    WorkerEvent,
)

if TYPE_CHECKING:
    from typing_extensions import TypeIs


class BreakerOpened(msgspec.Struct, frozen=True):
    """Restarts of these workers are held back: what they need seems to be away."""

    breaker: str
    reason: str
    workers: tuple[str, ...]


class CanaryStarted(msgspec.Struct, frozen=True):
    """One worker of an open breaker tries whether it holds."""

    breaker: str
    component_id: str


class BreakerClosed(msgspec.Struct, frozen=True):
    """The canary held, and all come back."""

    breaker: str
    open_for_s: float
    workers: tuple[str, ...]
    """Those who were held back."""


class WorkReleased(msgspec.Struct, frozen=True):
    """The release hook of a worker that died or was killed has answered."""

    component_id: str
    generation: int
    work_item: str
    cleared: bool
    """False: there was nothing to clear."""
    detail: str
    output: tuple[str, ...] = ()
    """The last lines of the tool."""


class WorkReleaseFailed(msgspec.Struct, frozen=True):
    """A work item could not be released: its tool is missing, failed, or was cut off."""

    component_id: str
    generation: int
    work_item: str
    reason: str
    output: tuple[str, ...] = ()


class JobRequeued(msgspec.Struct, frozen=True):
    """The job that a worker held when it ended is pending again."""

    job_id: int
    queue: str
    component_id: str
    generation: int
    crash_count: int
    counted: bool = True
    """Whether the end was a crash; a worker that was stopped on request is none."""


class JobConvicted(msgspec.Struct, frozen=True):
    """Too many workers died on a job: it is toxic, and not tried again by itself."""

    job_id: int
    queue: str
    component_id: str
    generation: int
    crash_count: int


class PauseBegan(msgspec.Struct, frozen=True):
    """A worker is held back, or the whole system is."""

    component_id: str | None
    """None: the whole system."""
    reason: str
    for_s: float | None
    """None: until somebody resumes."""


class PauseEnded(msgspec.Struct, frozen=True):
    """A pause is over: somebody resumed, or its time was up."""

    component_id: str | None
    """None: that of the whole system."""


class AlertChanged(msgspec.Struct, frozen=True):
    """An alert was opened, counted once more, escalated, acknowledged or resolved."""

    happening: Happening
    alert: Alert

    @property
    def component_id(self) -> str | None:
        """The worker that it is about, if it is about one."""
        return self.alert.component_id


class ActorReplaced(msgspec.Struct, frozen=True):
    """One of our own actors raised and was replaced, with its state rebuilt."""

    actor: str
    error: str


class StoreDegraded(msgspec.Struct, frozen=True):
    """The store takes nothing at the moment; supervision goes on from memory."""

    reason: str
    unsaved: int


class StoodDown(msgspec.Struct, frozen=True):
    """Another supervisor took the store over; we stop our workers and start none again."""

    reason: str


class StoreRecovered(msgspec.Struct, frozen=True):
    """Everything that was waiting has been kept."""


class EventsLost(msgspec.Struct, frozen=True):
    """So many events, the oldest that waited for the store, were given up in a long outage."""

    count: int
    first_id: int
    last_id: int


class GatewayLost(msgspec.Struct, frozen=True):
    """A gateway delivers nothing at the moment, and why; nothing else waits for it."""

    gateway: str
    reason: str


class GatewayRestored(msgspec.Struct, frozen=True):
    """A gateway delivers again, and where to."""

    gateway: str
    detail: str


WiderEvent = (
    BreakerOpened
    | CanaryStarted
    | BreakerClosed
    | WorkReleased
    | WorkReleaseFailed
    | PauseBegan
    | PauseEnded
    | JobRequeued
    | JobConvicted
    | AlertChanged
    | ActorReplaced
    | StoreDegraded
    | StoreRecovered
    | StoodDown
    | EventsLost
    | GatewayLost
    | GatewayRestored
)
"""What is about more than the life of one worker."""

Event = WorkerEvent | WiderEvent


_EVENTS = frozenset(get_args(Event))


def is_event(said: object) -> TypeIs[Event]:
    """Whether it is an event; by its type, since a union of thirty is looked through one by one."""
    return type(said) in _EVENTS


Passing = ResourcesSampled
"""Events that are told to whoever listens without a number: there are too many for the log."""
