"""What the ResourceMonitor, the JobDesk and the QueueWatch are told."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ...deaths.death import Exit
from ...facts.jobs import JobSettled
from ...spec.resource_limits import ResourceLimits
from .. import Published, Snapshot, StateChanged


class WatchUsage(msgspec.Struct, frozen=True):
    """Look at this incarnation now and then."""

    component_id: str
    generation: int
    limits: ResourceLimits
    recycle_above_mb: float | None


class UnwatchUsage(msgspec.Struct, frozen=True):
    """This incarnation is gone."""

    component_id: str
    generation: int


class LookDue(msgspec.Struct, frozen=True):
    """Timer: time for the next look at one worker."""

    component_id: str
    generation: int


ResourceMessage = WatchUsage | UnwatchUsage | LookDue


class IncarnationEnded(msgspec.Struct, frozen=True, kw_only=True):
    """A worker that serves queues is gone: what it had claimed is to be released."""

    component_id: str
    generation: int
    counted: bool
    """Whether it was a crash."""
    crash_retries: int | None
    cause: str
    exit: Exit
    output: tuple[str, ...] = ()


class JobsSettled(msgspec.Struct, frozen=True):
    """What became of jobs whose claims were released, now that it is kept."""

    settled: tuple[JobSettled, ...]


DeskMessage = IncarnationEnded | JobsSettled


class WatchQueues(msgspec.Struct, frozen=True):
    """These queues are served, by these workers; without any there is nothing to look at."""

    queues: tuple[str, ...]
    workers: frozenset[str]


class QueuesTouched(msgspec.Struct, frozen=True):
    """Something may have changed in the queues; with these jobs, as far as they are known."""

    job_ids: tuple[int, ...] = ()


class ToxicSeen(msgspec.Struct, frozen=True):
    """How many toxic jobs each queue has, as a look showed that began at that time."""

    by_queue: Mapping[str, int]
    looked_at_wall_ms: int


class LookAtQueues(msgspec.Struct, frozen=True):
    """Timer: it is time to look."""


WatchMessage = WatchQueues | QueuesTouched | LookAtQueues | Snapshot | StateChanged | Published
