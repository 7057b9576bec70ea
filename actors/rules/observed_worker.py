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
    """One worker under observation; `generation` is the incarnation that counts."""

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
    """The deadline that stands in the queue for it."""
    last: StatusChanged | None = None
    """What was last said of it."""
    extensions: int = 0
    """How many absences of our own its silence was extensions since it was heard."""
    condemned: str | None = None
    """Why it is being killed, if it is."""

    @property
    def must_report(self) -> bool:
        """A plain program never sends a frame: that it was started is all that can be asked of it."""
        return self.reports_health or isinstance(self.state, Pending)

    @property
    def silence_is_allowed(self) -> bool:
        """A pause excuses silence, not a start that takes too long: others may wait for its end."""
        return self.paused and not isinstance(self.state, Pending)

    @property
    def due(self) -> float | None:
        """When time alone changes something next: its silence, or its work that does not move."""
        silent = deadline(self.state, self.policy)
        if self.progress.moved is None or not self._must_progress:
            return silent
        still = progress.deadline(self.progress, self.policy)
        if silent is None or still is None:
            return still if silent is None else silent
        return min(silent, still)

    def stuck(self, now: float) -> str | None:
        """How long its work has not moved, if that is too long."""
        return progress.stuck(self.progress, self.policy, now) if self._must_progress else None

    @property
    def _must_progress(self) -> bool:
        """One that starts or recovers has time of its own."""
        return isinstance(self.state, (Healthy, Unhealthy))

    def mirrored(self) -> HealthMirrored:
        """Its health, as people may read it."""
        return HealthMirrored(
            component_id=self.component_id,
            generation=self.generation,
            status=self.state.status.value,
            pid=self.pid,
            current_job=self.job,
            last_heartbeat_wall_ms=self.heartbeat_wall_ms,
        )
