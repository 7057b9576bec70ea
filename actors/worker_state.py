"""Pure: one worker as the Supervisor knows it, and what can be done about it.

`supervision` has the functions that lead from one such value to the next.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from .deaths import Exit, Job
from .health import Status
from .internal_messages import BackoffElapsed, HealthSustained
from .lifecycle import Urgency
from .messages import Event
from .records import DeathRecord, Record
from .restarts import RestartState
from .spec import WorkerSpec


class Rest(StrEnum):
    """Why a worker that is not running does not run."""

    NEW = "not started yet"
    STOPPED = "stopped"
    PAUSED = "paused"
    RESET = "reset"
    LEFT = "not restarted"


@dataclass(frozen=True, slots=True)
class Idle:
    """No process, and none to come by itself."""

    rest: Rest
    why: str = ""


@dataclass(frozen=True, slots=True)
class Up:
    """A process is there, or on its way."""

    generation: int
    since_ms: int
    pid: int | None = None


@dataclass(frozen=True, slots=True)
class BackingOff:
    """A restart is decided. It happens once its delay is over, it is kept, and the old process is gone."""

    record: DeathRecord
    decided_ms: int
    due_ms: int
    attempt: int
    elapsed: bool
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Stopping:
    """Told to end; `relaunch` says whether it comes back afterwards."""

    generation: int
    rest: Rest
    relaunch: bool = False
    urgency: Urgency = Urgency.GRACEFUL


@dataclass(frozen=True, slots=True)
class Failed:
    """Given up, durably."""

    reason: str


Phase = Idle | Up | BackingOff | Stopping | Failed


@dataclass(frozen=True, slots=True)
class Worker:
    """One worker as the Supervisor knows it."""

    spec: WorkerSpec
    phase: Phase = field(default_factory=lambda: Idle(Rest.NEW))
    generation: int = 0
    """The latest one that was started."""
    lingering: int | None = None
    """The generation whose process is not known to be gone."""
    restarts: RestartState = RestartState()
    status: Status | None = None
    job: Job | None = None
    not_before_ms: int | None = None
    """Until when a delay that a former run decided holds the first start back."""
    open_death: bool = False
    """The latest death was decided before its process had ended; how it ended is still to come."""

    @property
    def id(self) -> str:
        """The worker's component id."""
        return self.spec.id


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The moment in which something happens."""

    now_ms: int
    wall_ms: int
    stopping: bool = False
    paused: bool = False
    chance: float = 0.0


# ── Effects ──────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Launch:
    """Register this incarnation with the monitor and start it."""

    generation: int


@dataclass(frozen=True, slots=True)
class Halt:
    """End the process of this generation."""

    generation: int
    urgency: Urgency


@dataclass(frozen=True, slots=True)
class Idling:
    """Tell the running worker to idle, or to go on."""

    generation: int
    paused: bool


@dataclass(frozen=True, slots=True)
class Schedule:
    """Deliver this timer message later, in place of an earlier one of its kind."""

    delay_ms: int
    message: BackoffElapsed | HealthSustained


@dataclass(frozen=True, slots=True)
class AwaitSave:
    """Go on from memory if the death of this generation is not kept after this time."""

    generation: int
    delay_ms: int


@dataclass(frozen=True, slots=True)
class CancelTimers:
    """Nothing of this worker is to come."""


@dataclass(frozen=True, slots=True)
class KeepRecord:
    """Have this written down."""

    record: Record


@dataclass(frozen=True, slots=True)
class Announce:
    """Tell everyone who listens."""

    event: Event


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Tell the monitor that the worker is failed."""


@dataclass(frozen=True, slots=True)
class Forget:
    """Tell the monitor to expect nothing of the worker."""


@dataclass(frozen=True, slots=True)
class ReportStop:
    """The worker came to rest; whoever waits for its stop may know how it ended."""

    exit: Exit | None
    forced: int | None


Effect = (
    Launch
    | Halt
    | Idling
    | Schedule
    | AwaitSave
    | CancelTimers
    | KeepRecord
    | Announce
    | GiveUp
    | Forget
    | ReportStop
)


@dataclass(frozen=True, slots=True)
class Step:
    """The worker afterwards, and what is to be done."""

    worker: Worker
    effects: tuple[Effect, ...] = ()
