"""One worker under the HealthMonitor's observation."""

from __future__ import annotations

import msgspec

from ..deaths.death import Job
from ..facts.records import HealthMirrored
from ..messages import StatusChanged
from ..spec.worker_spec import HealthPolicy
from . import progress
from .health import Healthy, Pending, State, Unhealthy, deadline
from .progress import Progress


class ObservedWorker(msgspec.Struct):
    """What the HealthMonitor knows of one worker; `generation` is its current incarnation."""

    component_id: str
    generation: int
    policy: HealthPolicy
    reports_health: bool
    state: State
    since: float
    pid: int | None = None
    job: Job | None = None
    heartbeat_wall_ms: int | None = None
    heard_at: float | None = None
    progress: Progress = msgspec.field(default_factory=Progress)
    paused: bool = False
    checked_at: float | None = None
    """The deadline of its check in the queue."""
    last_change: StatusChanged | None = None
    """The last change that was sent."""
    extensions: int = 0
    """How often its deadline was extended since its last frame because the supervisor was suspended."""
    limit_exceeded: str | None = None
    """The limit for which the supervisor is killing it, if it is."""

    @property
    def must_report(self) -> bool:
        """Whether it has a deadline: a program without a channel has one for its start only."""
        return self.reports_health or isinstance(self.state, Pending)

    @property
    def silence_is_allowed(self) -> bool:
        """Whether it is paused. A start has its deadline all the same: other workers may wait for it."""
        return self.paused and not isinstance(self.state, Pending)

    @property
    def due(self) -> float | None:
        """When time alone changes its health next: because of silence, or of work without progress."""
        silent = deadline(self.state, self.policy)
        if self.progress.moved is None or not self._must_progress:
            return silent
        still = progress.deadline(self.progress, self.policy)
        if silent is None or still is None:
            return still if silent is None else silent
        return min(silent, still)

    def stuck(self, now: float) -> str | None:
        """How long its work made no progress, in words, if that is too long."""
        return progress.stuck(self.progress, self.policy, now) if self._must_progress else None

    @property
    def _must_progress(self) -> bool:
        """Not while it starts or recovers, which have deadlines of their own."""
        return isinstance(self.state, (Healthy, Unhealthy))

    def mirrored(self) -> HealthMirrored:
        """Its health as a record for people to read."""
        return HealthMirrored(
            component_id=self.component_id,
            generation=self.generation,
            status=self.state.status.value,
            pid=self.pid,
            current_job=self.job,
            last_heartbeat_wall_ms=self.heartbeat_wall_ms,
        )
