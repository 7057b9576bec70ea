"""Events about one worker."""

from __future__ import annotations

import msgspec

from ..deaths.death import Death, Exit
from ..deaths.findings import Confidence, Finding
from ..facts.health_status import Status
from ..facts.records import UsageNoted
from ..facts.usage import Usage
from .replies import Budget


class StatusChanged(msgspec.Struct, frozen=True, kw_only=True):
    """The HealthMonitor saw a worker's health change."""

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
    note: str = ""
    """How a worker was started that may be forked from a warm process, in words."""


class WorkerDied(msgspec.Struct, frozen=True):
    """A worker died; `action` is the decision."""

    death: Death
    action: str
    reason: str
    delay_s: float
    restart_count: int
    streak_count: int = 0
    """Restarts in a row, without sustained health between them."""
    budget: Budget | None = None
    """How much of each limit is used after this decision."""
    finding: Finding | None = None
    """The diagnosis from the evidence available at once; the bundle has all of it."""
    confidence: Confidence | None = None
    last_error: str = ""
    """The last line that the worker wrote about an error, if it ended with one."""
    exhausted: bool = False
    """A limit is reached: the supervisor no longer restarts the worker by itself."""
    done: bool = False
    """It completed the task of a worker with `kind = "once"`."""

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
        """Whether it ended well and is not restarted: not a problem."""
        return self.action == "none" and self.death.ended_well


class WorkerFailed(msgspec.Struct, frozen=True):
    """A worker was given up, until a reset or, if its policy allows, a changed version."""

    component_id: str
    generation: int
    reason: str
    limit: str = ""
    """Which limit is reached: `lifetime`, `window`, `consecutive`, `boot`, `exit_code` or `group`."""
    used: int | None = None
    """How many restarts that limit has counted."""
    allowed: int | None = None


class WorkerStopping(msgspec.Struct, frozen=True):
    """A running worker was asked to end; not a death. `WorkerStopped` follows."""

    component_id: str
    generation: int
    reason: str
    """A code: `operator_stop`, `operator_restart`, `pause`, `configuration_change`, `removal`,
    `recycle`, `shutdown`, `marked_failed`, `group_restart`, `replaced`, `moved` or `fenced`."""
    because: str = ""
    """With `group_restart`: the member of its group that died."""


class WorkerStopped(msgspec.Struct, frozen=True):
    """A worker was stopped on request; not a death."""

    component_id: str
    generation: int
    exit: Exit
    forced: int | None


class StopStepTaken(msgspec.Struct, frozen=True):
    """A stopping worker was told to take no more work, was sent a signal, or was asked for its stacks."""

    component_id: str
    generation: int
    step: str
    """`drain` (it takes no more work), `drained` or `not_drained` (the end of that), `stacks` (it was asked
    to write its stacks), `SIGTERM` (or its policy's signal) or `SIGKILL`."""
    detail: str = ""
    """With `not_drained`: why."""


class WorkerSignalled(msgspec.Struct, frozen=True):
    """A worker was sent a signal because an operator or the host ordered it."""

    component_id: str
    generation: int
    signal: str
    """Its name, such as `SIGHUP`."""


class WorkerUnkillable(msgspec.Struct, frozen=True):
    """A process survived SIGKILL; no new process starts until it is gone."""

    component_id: str
    generation: int
    pid: int


class ResourceWarned(msgspec.Struct, frozen=True):
    """A worker exceeds a warning threshold: `used` of `resource` is above `limit`."""

    component_id: str
    generation: int
    resource: str
    used: float
    limit: float


class ResourceEased(msgspec.Struct, frozen=True):
    """A worker is below a threshold again."""

    component_id: str
    generation: int
    resource: str
    used: float
    limit: float


class ResourceViolated(msgspec.Struct, frozen=True):
    """A worker exceeded a limit in `in_a_row` consecutive samples."""

    component_id: str
    generation: int
    resource: str
    used: float
    limit: float
    in_a_row: int
    fatal: bool
    """The worker is killed."""


class ResourcesSampled(msgspec.Struct, frozen=True):
    """What a worker uses, and the peak of this incarnation; sent periodically."""

    component_id: str
    generation: int
    usage: Usage
    peak: Usage
    at_wall_ms: int = 0
    """When the sample was taken; it has no number and is persisted later."""

    @property
    def noted(self) -> UsageNoted:
        """The sample as a record."""
        return UsageNoted(
            component_id=self.component_id,
            generation=self.generation,
            at_wall_ms=self.at_wall_ms,
            usage=self.usage,
            peak_memory_mb=self.peak.memory_mb,
        )


class WorkerRecycled(msgspec.Struct, frozen=True):
    """A healthy worker gets a new process; not a death, and not counted."""

    component_id: str
    generation: int
    reason: str


class WorkerReset(msgspec.Struct, frozen=True):
    """A worker's counters and failure were cleared."""

    component_id: str


class WorkerRemoved(msgspec.Struct, frozen=True):
    """A worker is no longer supervised; its history stays, its counters are deleted."""

    component_id: str


class WorkerPlaced(msgspec.Struct, frozen=True):
    """The cluster has a worker run on this node from now on."""

    component_id: str
    node: str
    epoch: int
    restart_count: int = 0
    """The restarts that it arrives with."""


class FailureLifted(msgspec.Struct, frozen=True):
    """The version of a failed worker changed; its counters and failure were cleared."""

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
    | WorkerSignalled
    | WorkerUnkillable
    | WorkerRecycled
    | WorkerReset
    | WorkerPlaced
    | FailureLifted
    | WorkerRemoved
    | ResourceWarned
    | ResourceEased
    | ResourceViolated
    | ResourcesSampled
)
"""Every event about one worker's life."""
