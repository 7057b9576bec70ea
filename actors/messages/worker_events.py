"""What happens to one worker."""

from __future__ import annotations

import msgspec

from ..deaths.death import Death, Exit
from ..deaths.findings import Confidence, Finding
from ..facts.health_status import Status
from ..facts.records import UsageNoted
from ..facts.usage import Usage
from .replies import Budget


class StatusChanged(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's health changed; said by the HealthMonitor."""

    component_id: str
    generation: int
    old: Status
    new: Status
    at: float
    """Monotonic seconds: when it was noticed."""
    death: Death | None = None
    detail: str = ""
    misses: int = 0
    recover_for_s: float | None = None


class WorkerStarted(msgspec.Struct, frozen=True):
    """A new incarnation runs."""

    component_id: str
    generation: int
    pid: int


class WorkerDied(msgspec.Struct, frozen=True):
    """A worker died, and what was decided on it."""

    death: Death
    action: str
    reason: str
    delay_s: float
    restart_count: int
    streak_count: int = 0
    """How many of the restarts came without a time of sustained health between them."""
    budget: Budget | None = None
    """How much of each limit is used up after this decision."""
    finding: Finding | None = None
    """What it died of by the evidence there was at once, and how sure that is; its bundle has it all."""
    confidence: Confidence | None = None

    @property
    def component_id(self) -> str:
        """Whose death it was."""
        return self.death.component_id

    @property
    def generation(self) -> int:
        """Which of its incarnations died."""
        return self.death.generation

    @property
    def is_finished(self) -> bool:
        """Whether it ended well and nobody wants it back: no misfortune at all."""
        return self.action == "none" and self.death.ended_well


class WorkerFailed(msgspec.Struct, frozen=True):
    """A worker was given up; only a reset lifts it, or a changed version where its policy says so."""

    component_id: str
    generation: int
    reason: str


class WorkerStopping(msgspec.Struct, frozen=True):
    """A running worker was told to end; this is not a death. `WorkerStopped` follows when it has ended."""

    component_id: str
    generation: int
    reason: str
    """A code: `operator_stop`, `operator_restart`, `pause`, `configuration_change`, `removal`,
    `recycle`, `shutdown` or `marked_failed`."""


class WorkerStopped(msgspec.Struct, frozen=True):
    """A worker was stopped on request; not a death."""

    component_id: str
    generation: int
    exit: Exit
    forced: int | None


class StopStepTaken(msgspec.Struct, frozen=True):
    """A worker that is to end was sent a signal, or asked for its stacks."""

    component_id: str
    generation: int
    step: str
    """`stacks` (it was asked to write its stacks down), `SIGTERM` (or what its policy says) or `SIGKILL`."""


class WorkerUnkillable(msgspec.Struct, frozen=True):
    """A process survived SIGKILL; nothing is started in its place until it is gone."""

    component_id: str
    generation: int
    pid: int


class ResourceWarned(msgspec.Struct, frozen=True):
    """A worker uses more than it should; `used` of `resource` is above `limit`."""

    component_id: str
    generation: int
    resource: str
    used: float
    limit: float


class ResourceEased(msgspec.Struct, frozen=True):
    """A worker that was warned of uses less again."""

    component_id: str
    generation: int
    resource: str
    used: float
    limit: float


class ResourceViolated(msgspec.Struct, frozen=True):
    """A worker uses more than it may, for the so-and-so-manieth look in a row."""

    component_id: str
    generation: int
    resource: str
    used: float
    limit: float
    in_a_row: int
    fatal: bool
    """It is killed for it."""


class ResourcesSampled(msgspec.Struct, frozen=True):
    """What a worker uses, and the most that this incarnation ever used; said now and then."""

    component_id: str
    generation: int
    usage: Usage
    peak: Usage
    at_wall_ms: int = 0
    """When it was looked at: a sample has no number and goes into the store some time later."""

    @property
    def noted(self) -> UsageNoted:
        """The sample as it is kept."""
        return UsageNoted(
            component_id=self.component_id,
            generation=self.generation,
            at_wall_ms=self.at_wall_ms,
            usage=self.usage,
            peak_memory_mb=self.peak.memory_mb,
        )


class WorkerRecycled(msgspec.Struct, frozen=True):
    """A worker that was well gets a new process; not a death, and not counted."""

    component_id: str
    generation: int
    reason: str


class WorkerReset(msgspec.Struct, frozen=True):
    """A worker's counters and failure were cleared."""

    component_id: str


class WorkerRemoved(msgspec.Struct, frozen=True):
    """A worker is supervised no longer; its history stays, its counters do not."""

    component_id: str


class FailureLifted(msgspec.Struct, frozen=True):
    """A worker that was given up is another version now; its counters and failure were cleared."""

    component_id: str
    old_fingerprint: str
    new_fingerprint: str
    reason: str
    """What changed."""


WorkerEvent = (
    StatusChanged
    | WorkerStarted
    | WorkerDied
    | WorkerFailed
    | WorkerStopping
    | WorkerStopped
    | StopStepTaken
    | WorkerUnkillable
    | WorkerRecycled
    | WorkerReset
    | FailureLifted
    | WorkerRemoved
    | ResourceWarned
    | ResourceEased
    | ResourceViolated
    | ResourcesSampled
)
"""Every event about one worker's life."""
