"""What our own actors tell the Supervisor."""

from __future__ import annotations

import msgspec

from ...deaths.death import Exit, Job
from ...deaths.evidence import Remains
from ...facts.records import Remembered
from ...spec.worker_spec import WorkerSpec
from .. import HostCommand, StatusChanged, StoodDown, StoreDegraded, StoreRecovered, WorkerUnkillable
from .to_prober import BreakerDue, ProbeAnswered
from .to_proxy import ProcessStarted


class ProcessGone(msgspec.Struct, frozen=True):
    """Nothing is left of this incarnation; `forced` is the signal of ours that ended it."""

    component_id: str
    generation: int
    exit: Exit
    forced: int | None = None
    remains: Remains | None = None


class ProcessReported(msgspec.Struct, frozen=True):
    """What runs under this id, by its proxy; generation None is nothing.

    `told` is the latest incarnation that the proxy was to start: what the Supervisor asked
    for since is not in the answer.
    """

    component_id: str
    generation: int | None
    told: int


class RegistrationRefused(msgspec.Struct, frozen=True):
    """The HealthMonitor holds the worker for failed."""

    component_id: str
    generation: int


class JobChanged(msgspec.Struct, frozen=True):
    """A worker took or left a job."""

    component_id: str
    generation: int
    job: Job | None


class BackoffElapsed(msgspec.Struct, frozen=True):
    """Timer: the delay before a restart is over."""

    component_id: str
    generation: int
    attempt: int


class HealthSustained(msgspec.Struct, frozen=True):
    """Timer: a worker stayed healthy for as long as its policy asks."""

    component_id: str
    generation: int


class LimitExceeded(msgspec.Struct, frozen=True):
    """An incarnation uses more than it may and is to be killed."""

    component_id: str
    generation: int
    detail: str


class RecycleDue(msgspec.Struct, frozen=True):
    """Timer, or from the ResourceMonitor: this incarnation should make room for a new one."""

    component_id: str
    generation: int
    reason: str


class SaveOverdue(msgspec.Struct, frozen=True):
    """Timer: the store may not have answered in time; supervision goes on from memory."""


class PauseElapsed(msgspec.Struct, frozen=True):
    """Timer: some pause may be over."""


class BatchKept(msgspec.Struct, frozen=True):
    """These deaths, as (component_id, generation), are in the store now."""

    deaths: tuple[tuple[str, int], ...]


class Declare(msgspec.Struct, frozen=True):
    """The workers to supervise, and what is remembered of them; once, before anything else."""

    specs: tuple[WorkerSpec, ...]
    remembered: Remembered


class MonitorReplaced(msgspec.Struct, frozen=True):
    """The HealthMonitor was made anew and may have missed something."""


OwnNews = (
    BreakerDue
    | ProbeAnswered
    | Declare
    | SaveOverdue
    | PauseElapsed
    | StoreDegraded
    | StoreRecovered
    | StoodDown
    | MonitorReplaced
)
"""What our own actors and timers report about the system."""

WorkerNews = (
    StatusChanged
    | ProcessStarted
    | ProcessGone
    | ProcessReported
    | WorkerUnkillable
    | RegistrationRefused
    | JobChanged
    | BackoffElapsed
    | HealthSustained
    | LimitExceeded
    | RecycleDue
    | BatchKept
)
"""What our own actors and timers report about workers."""

SupervisorMessage = HostCommand | OwnNews | WorkerNews
