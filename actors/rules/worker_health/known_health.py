"""Pure: the health of a worker as a supervisor hands it over when it is upgraded.

The policies are not part of it: they come with the registration of the same incarnation.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from ...deaths.death import Job
from ...messages import StatusChanged
from ...messages.internal.to_monitor import ExpectLimitKill
from .health_states import State
from .observed_worker import ObservedWorker
from .probe_answers import ProbeAnswer
from .progress import Progress
from .watchdog import NO_WATCHDOG


class KnownHealth(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What only the HealthMonitor knows of one incarnation."""

    generation: int
    state: State
    since: float
    pid: int | None = None
    start_note: str = ""
    job: Job | None = None
    heartbeat_wall_ms: int | None = None
    heard_at: float | None = None
    progress: Progress = Progress()
    fed: float | None = None
    """When its watchdog was last fed."""
    stopping: float | None = None
    """When it said that it is stopping."""
    said: str = ""
    probes: tuple[ProbeAnswer, ...] = ()
    paused: bool = False
    extensions: int = 0
    was_ready: bool = False
    limit_exceeded: ExpectLimitKill | None = None
    last_change: StatusChanged | None = None
    """The last change that was sent, which is repeated if an actor raises."""


def known_health(worker: ObservedWorker) -> KnownHealth:
    """What to hand over of a worker."""
    return KnownHealth(
        generation=worker.generation,
        state=worker.state,
        since=worker.since,
        pid=worker.pid,
        start_note=worker.start_note,
        job=worker.job,
        heartbeat_wall_ms=worker.heartbeat_wall_ms,
        heard_at=worker.heard_at,
        progress=worker.progress,
        fed=worker.watchdog.fed,
        stopping=worker.watchdog.stopping,
        said=worker.said,
        probes=worker.probes.latest,
        paused=worker.paused,
        extensions=worker.extensions,
        was_ready=worker.was_ready,
        limit_exceeded=worker.limit_exceeded,
        last_change=worker.last_change,
    )


def restore(worker: ObservedWorker, known: KnownHealth) -> None:
    """Give a newly registered worker the health that its process has had."""
    worker.state = known.state
    worker.since = known.since
    worker.pid = known.pid
    worker.start_note = known.start_note
    worker.job = known.job
    worker.heartbeat_wall_ms = known.heartbeat_wall_ms
    worker.heard_at = known.heard_at
    worker.progress = known.progress
    if worker.watchdog is not NO_WATCHDOG:
        worker.watchdog = replace(worker.watchdog, fed=known.fed, stopping=known.stopping)
    worker.said = known.said
    worker.probes = replace(worker.probes, latest=known.probes)
    worker.paused = known.paused
    worker.extensions = known.extensions
    worker.was_ready = known.was_ready
    worker.limit_exceeded = known.limit_exceeded
    worker.last_change = known.last_change
