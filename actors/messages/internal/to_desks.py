"""Messages to the ResourceMonitor, the JobDesk, the QueueWatch, the PeriodicDesk and the AlertDesk."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from ...deaths.death import Exit
from ...facts.jobs import ErrorRetries, JobSettled
from ...facts.queues import QueueLimits
from ...spec.policies.queues.periodic import Periodic
from ...spec.policies.resource_limits import ResourceLimits
from .. import Published, Snapshot, StateChanged


class WatchUsage(msgspec.Struct, frozen=True):
    """Sample this incarnation's usage from time to time."""

    component_id: str
    generation: int
    limits: ResourceLimits
    recycle_above_mb: float | None


class UnwatchUsage(msgspec.Struct, frozen=True):
    """This incarnation has ended; stop sampling it."""

    component_id: str
    generation: int


class LookDue(msgspec.Struct, frozen=True):
    """Timer: the next sample of one worker is due."""

    component_id: str
    generation: int


ResourceMessage = WatchUsage | UnwatchUsage | LookDue


class IncarnationEnded(msgspec.Struct, frozen=True, kw_only=True):
    """A worker that serves queues has ended: release its claims."""

    component_id: str
    generation: int
    counted: bool
    """Whether the end counts as a crash."""
    crash_retries: int | None
    cause: str
    exit: Exit
    output: tuple[str, ...] = ()
    begun: tuple[tuple[int, int], ...] | None = None
    """The number and attempt of the jobs that it had begun; None: not known."""
    error_retries: ErrorRetries = ErrorRetries()


class JobsSettled(msgspec.Struct, frozen=True):
    """The outcome of the jobs whose claims were released, now that it is persisted."""

    settled: tuple[JobSettled, ...]


DeskMessage = IncarnationEnded | JobsSettled


class WatchQueues(msgspec.Struct, frozen=True):
    """These workers serve these queues; without queues there is nothing to watch."""

    queues: tuple[str, ...]
    workers: frozenset[str]
    grace_s: Mapping[str, float] = MappingProxyType({})
    """By worker: how long a job that has to end may take before its process is ended."""


class QueuesTouched(msgspec.Struct, frozen=True):
    """The queues may have changed; `job_ids` are the changed jobs, as far as they are known."""

    job_ids: tuple[int, ...] = ()


class DeclarePeriodic(msgspec.Struct, frozen=True):
    """Enqueue exactly these periodic jobs; queues have exactly these limits."""

    jobs: tuple[Periodic, ...]
    limits: tuple[QueueLimits, ...] = ()


class PeriodicDue(msgspec.Struct, frozen=True):
    """Timer: a periodic job may be due."""


PeriodicMessage = DeclarePeriodic | PeriodicDue


class ToxicSeen(msgspec.Struct, frozen=True):
    """How many toxic jobs each queue had at that time."""

    by_queue: Mapping[str, int]
    looked_at_wall_ms: int


class LookAtQueues(msgspec.Struct, frozen=True):
    """Timer: the next look at the queues is due."""


class LookAtLimits(msgspec.Struct, frozen=True):
    """Timer: jobs may have been cancelled, take too long or have expired."""


WatchMessage = WatchQueues | QueuesTouched | LookAtQueues | LookAtLimits | Snapshot | StateChanged | Published
