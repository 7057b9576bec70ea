"""Events about breakers, jobs, pauses, alerts and Rekindle itself; and the union of all events."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import msgspec

from ..facts.alert import Alert, Happening
from .cluster_events import ClusterEvent
from .group_events import GroupEvent
from .queue_events import QueueEvent
from .rollout_events import RolloutEvent
from .run_events import RunEvent
from .worker_events import (
    ResourcesSampled,
    WorkerEvent,
)

if TYPE_CHECKING:
    from typing_extensions import TypeIs


class BreakerOpened(msgspec.Struct, frozen=True):
    """Restarts of these workers are held back: something that they need seems to be unavailable."""

    breaker: str
    reason: str
    workers: tuple[str, ...]


class CanaryStarted(msgspec.Struct, frozen=True):
    """One worker of an open breaker is started as a trial."""

    breaker: str
    component_id: str


class BreakerClosed(msgspec.Struct, frozen=True):
    """The canary stayed healthy; all held workers restart."""

    breaker: str
    open_for_s: float
    workers: tuple[str, ...]
    """The workers that were held back."""


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
    """Whether the end was a crash, not a stop on request."""


class JobConvicted(msgspec.Struct, frozen=True):
    """Too many workers died on a job: it is toxic and is not retried automatically."""

    job_id: int
    queue: str
    component_id: str
    generation: int
    crash_count: int


class JobCancelled(msgspec.Struct, frozen=True):
    """A cancelled job ended with the process of its worker."""

    job_id: int
    queue: str
    component_id: str
    generation: int


class JobTimedOut(msgspec.Struct, frozen=True):
    """A job that took longer than its `timeout_s` ended with the process of its worker."""

    job_id: int
    queue: str
    component_id: str
    generation: int
    retried: bool = False
    """Whether the job is pending again."""


class PauseBegan(msgspec.Struct, frozen=True):
    """A worker or the whole system was paused."""

    component_id: str | None
    """None: the whole system."""
    reason: str
    for_s: float | None
    """None: until it is resumed."""


class PauseEnded(msgspec.Struct, frozen=True):
    """A pause ended: it was resumed, or its time was over."""

    component_id: str | None
    """None: the whole system."""


class AlertChanged(msgspec.Struct, frozen=True):
    """An alert was opened, counted once more, escalated, acknowledged or resolved."""

    happening: Happening
    alert: Alert

    @property
    def component_id(self) -> str | None:
        """The worker that the alert is about, if any."""
        return self.alert.component_id


class ActorReplaced(msgspec.Struct, frozen=True):
    """An actor of Rekindle raised and was replaced; its state was rebuilt."""

    actor: str
    error: str


class SupervisionStalled(msgspec.Struct, frozen=True):
    """Nothing was supervised for a time: the supervisor was suspended, or something blocked it."""

    for_s: float
    part: str = "supervisor"
    """What stalled: the whole `supervisor`, or the `watcher`, its thread that watches the processes."""


class StoreDegraded(msgspec.Struct, frozen=True):
    """The store is unavailable; supervision continues from memory."""

    reason: str
    unsaved: int


class StoodDown(msgspec.Struct, frozen=True):
    """Another supervisor took over the store; this one stops its workers and starts none."""

    reason: str


class StoreRecovered(msgspec.Struct, frozen=True):
    """All waiting records are persisted."""


class EventsLost(msgspec.Struct, frozen=True):
    """The oldest events that waited for the store were dropped in a long outage."""

    count: int
    first_id: int
    last_id: int


class RecordSetAside(msgspec.Struct, frozen=True):
    """The store cannot write a record, and a retry would not help; the records behind it are written."""

    kind: str
    """The type of the record."""
    error: str
    content: str
    """The record as text, possibly shortened."""


class GatewayLost(msgspec.Struct, frozen=True):
    """A gateway cannot deliver; nothing else waits for it."""

    gateway: str
    reason: str


class GatewayRestored(msgspec.Struct, frozen=True):
    """A gateway delivers again; `detail` names the destination."""

    gateway: str
    detail: str


class SupervisorUpgraded(msgspec.Struct, frozen=True):
    """Another program replaced the supervisor in the same process; the workers ran on."""

    old: str
    """The version before."""
    new: str
    blind_ms: int
    """How long no process was watched; what happened meanwhile is recorded after it."""
    number: int
    """Counts the upgrades of this process, also those that failed."""


class UpgradeFailed(msgspec.Struct, frozen=True):
    """The program that replaced the supervisor did not become ready, and the former one is back."""

    reason: str
    version: str
    """The version that is back."""
    blind_ms: int


class LogInterrupted(msgspec.Struct, frozen=True):
    """A log file cannot be written; lines are dropped and counted when no more can wait in memory."""

    file: str
    reason: str
    workers: tuple[str, ...]
    """Whose output it has."""


class LogResumed(msgspec.Struct, frozen=True):
    """A log file is written again."""

    file: str
    dropped: int
    """How many lines are missing; the file says so, too."""
    interrupted: int = 0
    """How many other log files cannot be written."""


class StartsHindered(msgspec.Struct, frozen=True):
    """The machine has no descriptor, process or memory for a worker; the start is tried again each second."""

    component_id: str
    """The first worker that could not be started."""
    reason: str


class StartsResumed(msgspec.Struct, frozen=True):
    """All workers that waited for room on the machine are started, or no longer wanted."""


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
    | JobCancelled
    | JobTimedOut
    | AlertChanged
    | ActorReplaced
    | SupervisionStalled
    | StoreDegraded
    | StoreRecovered
    | StoodDown
    | EventsLost
    | RecordSetAside
    | GatewayLost
    | GatewayRestored
    | SupervisorUpgraded
    | UpgradeFailed
    | LogInterrupted
    | LogResumed
    | StartsHindered
    | StartsResumed
)
"""Events about more than the life of one worker."""

Event = WorkerEvent | GroupEvent | RolloutEvent | RunEvent | QueueEvent | ClusterEvent | WiderEvent


_EVENTS = frozenset(get_args(Event))


def is_event(message: object) -> TypeIs[Event]:
    """Whether it is an event; by its type, since `isinstance` checks a union one by one."""
    return type(message) in _EVENTS


Passing = ResourcesSampled
"""Events that are published without a number: there are too many for the log."""
