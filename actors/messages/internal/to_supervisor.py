"""Messages from our own actors to the Supervisor."""

from __future__ import annotations

import msgspec

from ...deaths.death import Exit, Job
from ...deaths.evidence import Remains
from ...facts.records import Remembered
from ...spec.worker_spec import WorkerSpec
from .. import HostCommand, StatusChanged, StoodDown, StoreDegraded, StoreRecovered, WorkerUnkillable
from .hand_over import GoOn, ReportMemory
from .to_prober import BreakerDue, ProbeAnswered
from .to_proxy import ProcessStarted, SpawnFailed


class ProcessGone(msgspec.Struct, frozen=True):
    """No process of this incarnation is left; `forced` is the signal with which we ended it."""

    component_id: str
    generation: int
    exit: Exit
    forced: int | None = None
    remains: Remains | None = None


class ProcessReported(msgspec.Struct, frozen=True):
    """What runs under this id according to its proxy; generation None: nothing.

    `ordered` is the latest incarnation that the proxy had been asked to start: later requests of the
    Supervisor are not reflected here.
    """

    component_id: str
    generation: int | None
    ordered: int


class RegistrationRefused(msgspec.Struct, frozen=True):
    """The HealthMonitor has marked the worker as failed."""

    component_id: str
    generation: int


class JobChanged(msgspec.Struct, frozen=True):
    """A worker began or ended a job."""

    component_id: str
    generation: int
    job: Job | None


class BackoffElapsed(msgspec.Struct, frozen=True):
    """Timer: the delay before a restart is over."""

    component_id: str
    generation: int
    attempt: int


class HealthSustained(msgspec.Struct, frozen=True):
    """Timer: a worker stayed healthy for as long as its policy requires."""

    component_id: str
    generation: int


class RunsDue(msgspec.Struct, frozen=True):
    """Timer: runs of scheduled workers may be due."""


class RunOvertime(msgspec.Struct, frozen=True):
    """Timer: this run of a scheduled worker takes longer than it may."""

    component_id: str
    run: int


class LimitExceeded(msgspec.Struct, frozen=True):
    """An incarnation exceeds a resource limit and must be killed."""

    component_id: str
    generation: int
    detail: str


class RecycleDue(msgspec.Struct, frozen=True):
    """Timer, or from the ResourceMonitor: replace this incarnation with a new one."""

    component_id: str
    generation: int
    reason: str


class RolloutDue(msgspec.Struct, frozen=True):
    """Timer: it may be time for the next step of a rollout."""


class JobOverdue(msgspec.Struct, frozen=True):
    """From the QueueWatch: a job that has to end did not; replace the incarnation that executes it."""

    component_id: str
    generation: int
    reason: str


class SaveOverdue(msgspec.Struct, frozen=True):
    """Timer: the store may not have answered in time; supervision continues from memory."""


class StallCheckDue(msgspec.Struct, frozen=True):
    """Timer: due at this monotonic time; if it comes much later, supervision stalled."""

    at: float


class PauseElapsed(msgspec.Struct, frozen=True):
    """Timer: a pause may be over."""


class BatchCommitted(msgspec.Struct, frozen=True):
    """These deaths, as (component_id, generation), are in the store now."""

    deaths: tuple[tuple[str, int], ...]


class Declare(msgspec.Struct, frozen=True):
    """The workers to supervise, and their history; the first message, sent once."""

    specs: tuple[WorkerSpec, ...]
    remembered: Remembered


class WorkersDeclared(msgspec.Struct, frozen=True):
    """From the Supervisor to the system's front: these are the workers that it supervises from now on."""

    specs: tuple[WorkerSpec, ...]
    to_come: tuple[WorkerSpec, ...] = ()
    """Specs that a rollout may give to workers later."""


class MonitorReplaced(msgspec.Struct, frozen=True):
    """The HealthMonitor was replaced and may have missed messages."""


OwnNews = (
    BreakerDue
    | ProbeAnswered
    | Declare
    | SaveOverdue
    | PauseElapsed
    | RunsDue
    | RolloutDue
    | StallCheckDue
    | StoreDegraded
    | StoreRecovered
    | StoodDown
    | MonitorReplaced
    | ReportMemory
    | GoOn
)
"""What our own actors and timers report about the system."""

WorkerNews = (
    StatusChanged
    | ProcessStarted
    | SpawnFailed
    | ProcessGone
    | ProcessReported
    | WorkerUnkillable
    | RegistrationRefused
    | JobChanged
    | BackoffElapsed
    | HealthSustained
    | RunOvertime
    | LimitExceeded
    | RecycleDue
    | JobOverdue
    | BatchCommitted
)
"""What our own actors and timers report about workers."""

SupervisorMessage = HostCommand | OwnNews | WorkerNews
