"""What happens to groups, jobs and ourselves; and all events together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from ..alert import Alert, Happening
from .worker_events import (
    ResourcesSampled,
    WorkerEvent,
)

if TYPE_CHECKING:
    from typing_extensions import TypeIs


@dataclass(frozen=True, slots=True)
class BreakerOpened:
    """Restarts of these workers are held back: what they need seems to be away."""

    breaker: str
    reason: str
    workers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CanaryStarted:
    """One worker of an open breaker tries whether it holds."""

    breaker: str
    component_id: str


@dataclass(frozen=True, slots=True)
class BreakerClosed:
    """The canary held, and all come back."""

    breaker: str
    open_for_s: float
    workers: tuple[str, ...]
    """Those who were held back."""


@dataclass(frozen=True, slots=True)
class WorkReleased:
    """The release hook of a worker that died or was killed has answered."""

    component_id: str
    generation: int
    work_item: str
    cleared: bool
    """False: there was nothing to clear."""
    detail: str
    output: tuple[str, ...] = ()
    """The last lines of the tool."""


@dataclass(frozen=True, slots=True)
class WorkReleaseFailed:
    """A work item could not be released: its tool is missing, failed, or was cut off."""

    component_id: str
    generation: int
    work_item: str
    reason: str
    output: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JobRequeued:
    """The job that a worker held when it ended is pending again."""

    job_id: int
    queue: str
    component_id: str
    generation: int
    crash_count: int
    counted: bool = True
    """Whether the end was a crash; a worker that was stopped on request is none."""


@dataclass(frozen=True, slots=True)
class JobConvicted:
    """Too many workers died on a job: it is toxic, and not tried again by itself."""

    job_id: int
    queue: str
    component_id: str
    generation: int
    crash_count: int


@dataclass(frozen=True, slots=True)
class PauseBegan:
    """A worker is held back, or the whole system is."""

    component_id: str | None
    """None: the whole system."""
    reason: str
    for_s: float | None
    """None: until somebody resumes."""


@dataclass(frozen=True, slots=True)
class PauseEnded:
    """A pause is over: somebody resumed, or its time was up."""

    component_id: str | None
    """None: that of the whole system."""


@dataclass(frozen=True, slots=True)
class AlertChanged:
    """An alert was opened, counted once more, escalated, acknowledged or resolved."""

    happening: Happening
    alert: Alert

    @property
    def component_id(self) -> str | None:
        """The worker that it is about, if it is about one."""
        return self.alert.component_id


@dataclass(frozen=True, slots=True)
class ActorReplaced:
    """One of our own actors raised and was replaced, with its state rebuilt."""

    actor: str
    error: str


@dataclass(frozen=True, slots=True)
class StoreDegraded:
    """The store takes nothing at the moment; supervision goes on from memory."""

    reason: str
    unsaved: int


@dataclass(frozen=True, slots=True)
class StoodDown:
    """Another supervisor took the store over; we stop our workers and start none again."""

    reason: str


@dataclass(frozen=True, slots=True)
class StoreRecovered:
    """Everything that was waiting has been kept."""


@dataclass(frozen=True, slots=True)
class EventsLost:
    """So many events, the oldest that waited for the store, were given up in a long outage."""

    count: int
    first_id: int
    last_id: int


@dataclass(frozen=True, slots=True)
class GatewayLost:
    """A gateway delivers nothing at the moment, and why; nothing else waits for it."""

    gateway: str
    reason: str


@dataclass(frozen=True, slots=True)
class GatewayRestored:
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
