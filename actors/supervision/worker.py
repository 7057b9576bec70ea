"""Pure: one worker as the Supervisor knows it, and what can be done about it.

`supervision` has the functions that lead from one such value to the next. A restart makes a
dozen of them, so they are structs: copied with a change at a tenth of a dataclass's cost.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from ..deaths.death import Death, Exit, Job
from ..facts.health_status import Status
from ..facts.records import DeathRecord, Record
from ..messages import Event
from ..messages.internal.to_desks import IncarnationEnded
from ..messages.internal.to_supervisor import BackoffElapsed, HealthSustained, RunOvertime
from ..rules.restarts import RestartState
from ..rules.schedules.timetable import Timetable
from ..spec.policies.job_policy import JobPolicy
from ..spec.policies.stop_policy import Urgency
from ..spec.policies.work_item_policy import ReleaseOrder
from ..spec.worker_spec import Until, WorkerSpec


class Rest(StrEnum):
    """Why a worker that is not running does not run."""

    NEW = "not_started"
    STOPPED = "stopped"
    PAUSED = "paused"
    RESET = "reset"
    LEFT = "not_restarted"
    DONE = "finished"
    HELD = "held"
    GROUP = "group_given_up"
    SCHEDULED = "scheduled"
    """Between two runs of its schedule."""


class StopReason(StrEnum):
    """Why a running worker was told to end; none of these counts against it.

    The values are codes that events carry; `views.sentences.reason_words` turns them into words.
    """

    OPERATOR = "operator_stop"
    RESTART = "operator_restart"
    PAUSE = "pause"
    CHANGE = "configuration_change"
    REMOVAL = "removal"
    RECYCLE = "recycle"
    SHUTDOWN = "shutdown"
    REFUSED = "marked_failed"
    GROUP = "group_restart"
    REPLACED = "replaced"
    MOVE = "moved"
    """It continues on another node of the cluster, or is no longer wanted on this one."""
    FENCED = "fenced"
    """The node has lost its lease: it may not run workers."""

    @property
    def is_an_order(self) -> bool:
        """Whether an operator asked for the end of this worker in particular."""
        return self not in _OUR_OWN


_OUR_OWN = frozenset(
    {
        StopReason.RECYCLE,
        StopReason.SHUTDOWN,
        StopReason.REFUSED,
        StopReason.GROUP,
        StopReason.REPLACED,
        StopReason.MOVE,
        StopReason.FENCED,
    }
)


class Idle(msgspec.Struct, frozen=True, tag=True):
    """No process, and none to come by itself."""

    rest: Rest
    why: str = ""


class Up(msgspec.Struct, frozen=True, tag=True):
    """A process is there, or on its way."""

    generation: int
    since_ms: int
    pid: int | None = None
    delayed: str = ""
    """Why the machine has no room for the process, while that lasts."""


class BackingOff(msgspec.Struct, frozen=True, tag=True):
    """A restart is decided; it waits for its delay, for the store, and for the end of the old process."""

    record: DeathRecord
    decided_ms: int
    due_ms: int
    attempt: int
    elapsed: bool
    kept: bool = False
    former: bool = False
    """A former run decided it; the record only stands for the one in the store."""


class Stopping(msgspec.Struct, frozen=True, tag=True):
    """Ordered to end; with `relaunch` it is started again afterwards."""

    generation: int
    rest: Rest
    relaunch: bool = False
    by_hand: bool = False
    """Whether it does so in spite of a breaker, because an operator wants it."""
    urgency: Urgency = Urgency.GRACEFUL
    reason: StopReason | None = None
    """None: it died, and its process is still to end."""
    since_ms: int = 0
    """Since when it ran, if there is a reason."""
    pid: int | None = None
    """The pid of the process that has to end, if it is known."""


class Failed(msgspec.Struct, frozen=True, tag=True):
    """Not restarted until it is reset; this is persisted."""

    reason: str
    version: str | None = None
    """The version that was given up, if it is known."""


Phase = Idle | Up | BackingOff | Stopping | Failed


class OpenDeath(msgspec.Struct, frozen=True):
    """A death whose process had not ended; how it ends is still to come."""

    death: Death
    at_wall_ms: int


class SupervisedWorker(msgspec.Struct, frozen=True):
    """One worker as the Supervisor knows it."""

    spec: WorkerSpec
    phase: Phase = msgspec.field(default_factory=lambda: Idle(Rest.NEW))
    generation: int = 0
    """The latest one that was started."""
    lingering: int | None = None
    """The generation whose process is not known to be gone."""
    restarts: RestartState = RestartState()
    status: Status | None = None
    job: Job | None = None
    jobs: JobPolicy | None = None
    """The queues that its latest process was given; its spec may have changed since."""
    not_before_ms: int | None = None
    """Until when a delay that a former run decided holds the first start back."""
    unreleased: ReleaseOrder | None = None
    """The work item of a dead worker whose process still lives: it is released when that has ended."""
    open_death: OpenDeath | None = None
    """The latest death, if it was decided before its process had ended."""
    timetable: Timetable | None = None
    """Its runs, if it has a schedule."""
    begun_after: int | None = None
    """The latest generation before the current run."""

    @property
    def id(self) -> str:
        """The worker's component id."""
        return self.spec.id

    @property
    def is_done(self) -> bool:
        """Whether it ended with success and is not to run again by itself."""
        return isinstance(self.phase, Idle) and self.phase.rest is Rest.DONE

    @property
    def is_healthy(self) -> bool:
        """Whether it runs, and is well."""
        return isinstance(self.phase, Up) and self.status is Status.HEALTHY

    def lets_start(self, other: WorkerSpec) -> bool:
        """Whether a worker after it may start: it is ready, or if it is a task, done."""
        match other.until.get(self.id, Until.DONE if self.spec.is_task else Until.READY):
            case Until.DONE:
                return self.is_done
            case Until.READY:
                return self.is_healthy or self.is_done


class World(msgspec.Struct, frozen=True, kw_only=True):
    """The moment in which something happens."""

    now_ms: int
    wall_ms: int
    stopping: bool = False
    paused: bool = False
    held: str | None = None
    """Why a breaker holds this worker back, if it does."""
    down: str | None = None
    """Why its group is given up, if it is: no member starts."""
    by_hand: bool = False
    """Whether an operator ordered this start, which an open breaker does not prevent."""
    chance: float = 0.0
    version: str | None = None
    """This worker's code and configuration when they were last read."""


# ── Effects ──────────────────────────────────────────────────────────────────────────────


class Launch(msgspec.Struct, frozen=True):
    """Register this incarnation with the monitor and start it."""

    generation: int


class Halt(msgspec.Struct, frozen=True):
    """End the process of this generation; one that hangs says first where."""

    generation: int
    urgency: Urgency
    hung: bool = False


class SetIdle(msgspec.Struct, frozen=True):
    """Tell the running worker to idle, or to continue."""

    generation: int
    paused: bool


class Schedule(msgspec.Struct, frozen=True):
    """Deliver this timer message later, in place of an earlier one of its kind."""

    delay_ms: int
    message: BackoffElapsed | HealthSustained | RunOvertime


class AwaitSave(msgspec.Struct, frozen=True):
    """Go on from memory if the death of this generation is not kept after this time."""

    generation: int
    delay_ms: int


class CancelTimers(msgspec.Struct, frozen=True):
    """Cancel the timers of this worker."""


class KeepRecord(msgspec.Struct, frozen=True):
    """Persist this record."""

    record: Record


class Announce(msgspec.Struct, frozen=True):
    """Publish this event."""

    event: Event


class ReleaseWork(msgspec.Struct, frozen=True):
    """Have the WorkItemDesk release the work item that the worker left behind."""

    order: ReleaseOrder


class ReportFailed(msgspec.Struct, frozen=True):
    """Tell the monitor that the worker is failed."""


class StopMonitoring(msgspec.Struct, frozen=True):
    """Tell the monitor to expect nothing of the worker."""


class SetCause(msgspec.Struct, frozen=True):
    """Tell the monitor which cause to record for the coming death."""

    generation: int
    detail: str
    timeout: bool = False
    """Its run took too long; otherwise it exceeded a limit."""


class LookAtClock(msgspec.Struct, frozen=True):
    """Have the Supervisor look at once which runs are due: one may have waited for what just ended."""


class ShowScheduled(msgspec.Struct, frozen=True):
    """Have views show that the worker waits for its next run."""


class CompareHealth(msgspec.Struct, frozen=True):
    """Have the monitor compare what it holds of the worker with what runs, and repeat its last word."""

    found: int | None


class ReleaseJobs(msgspec.Struct, frozen=True):
    """Have the jobs of an incarnation that is gone released."""

    end: IncarnationEnded


class ReportStop(msgspec.Struct, frozen=True):
    """The worker came to rest; callers that wait for its stop learn how it ended."""

    exit: Exit | None
    forced: int | None
    relaunched: bool = False
    """It was started again meanwhile."""


Effect = (
    Launch
    | Halt
    | SetIdle
    | Schedule
    | AwaitSave
    | CancelTimers
    | KeepRecord
    | Announce
    | ReleaseWork
    | ReportFailed
    | StopMonitoring
    | SetCause
    | LookAtClock
    | ShowScheduled
    | CompareHealth
    | ReleaseJobs
    | ReportStop
)


class WorkerStep(msgspec.Struct, frozen=True):
    """The worker afterwards, and the effects to carry out."""

    worker: SupervisedWorker
    effects: tuple[Effect, ...] = ()
