"""Everything that the actors say, grouped by who hears it.

Commands are verbs, events past tense, timers are events too. All are immutable: pykka does
not copy what it delivers. Whatever concerns one incarnation carries (component_id,
generation), and what belongs to an older one is dropped by its hearer.

A command's `reply_to` is told `Done`, `Refused` or the reply that the command names; a
host's own actor may put its ref there, or leave it out.
"""

from __future__ import annotations

from dataclasses import dataclass

from .deaths import Death, Exit, Job
from .frames import Frame
from .health import Status
from .lifecycle import Urgency
from .ports import Receiver
from .records import Record, Remembered
from .spec import HealthPolicy, WorkerSpec

# ── What a host may tell the Supervisor ──────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class StartWorkers:
    """Start these workers, or all of them; what runs already is left alone."""

    ids: tuple[str, ...] | None = None
    reply_to: Receiver | None = None


@dataclass(frozen=True, slots=True)
class StopWorkers:
    """Stop these workers, or all of them. The reply is `WorkersStopped`, once they are gone."""

    ids: tuple[str, ...] | None = None
    reply_to: Receiver | None = None
    urgency: Urgency = Urgency.GRACEFUL


@dataclass(frozen=True, slots=True)
class RestartWorker:
    """Clear the worker's counters and start it afresh, now."""

    component_id: str
    reply_to: Receiver | None = None


@dataclass(frozen=True, slots=True)
class ResetWorker:
    """Clear the worker's counters and failure; it is not started."""

    component_id: str
    reply_to: Receiver | None = None


@dataclass(frozen=True, slots=True)
class PauseWorkers:
    """Pause these workers, or the whole system; remembered across restarts."""

    ids: tuple[str, ...] | None = None
    reply_to: Receiver | None = None


@dataclass(frozen=True, slots=True)
class ResumeWorkers:
    """End a pause; workers that it held back start at once."""

    ids: tuple[str, ...] | None = None
    reply_to: Receiver | None = None


@dataclass(frozen=True, slots=True)
class AddWorker:
    """Supervise one more worker, and start it if the others are started."""

    spec: WorkerSpec
    reply_to: Receiver | None = None


@dataclass(frozen=True, slots=True)
class RemoveWorker:
    """Stop a worker and forget it, its restart state included."""

    component_id: str
    reply_to: Receiver | None = None


@dataclass(frozen=True, slots=True)
class ReportStatus:
    """Answer with `StatusReport`."""

    reply_to: Receiver


@dataclass(frozen=True, slots=True)
class Shutdown:
    """Stop everything for good. The reply is `WorkersStopped`."""

    reply_to: Receiver | None = None
    urgency: Urgency = Urgency.GRACEFUL


HostCommand = (
    StartWorkers
    | StopWorkers
    | RestartWorker
    | ResetWorker
    | PauseWorkers
    | ResumeWorkers
    | AddWorker
    | RemoveWorker
    | ReportStatus
    | Shutdown
)

# ── Replies ──────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Done:
    """The command was carried out, or is under way."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The command was declined, and why; `unknown` is the id that nobody has, if that is it."""

    reason: str
    unknown: str | None = None


@dataclass(frozen=True, slots=True)
class StopResult:
    """How one worker ended when it was stopped."""

    component_id: str
    exit: Exit | None = None
    """None: there was no process to stop."""
    forced: int | None = None
    """The signal that was needed; None if asking was enough."""
    gone: bool = True
    """False: the process survived SIGKILL."""

    @property
    def killed(self) -> bool:
        """Whether it took SIGKILL."""
        return self.forced == 9


@dataclass(frozen=True, slots=True)
class WorkersStopped:
    """All the workers that were to stop have stopped."""

    results: tuple[StopResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStatus:
    """One worker as people see it."""

    component_id: str
    status: Status | None
    """The exact internal word; None when there is no incarnation to speak of."""
    shown: str
    """starting, healthy, stopping, stopped, crashed or failed."""
    generation: int
    pid: int | None
    uptime_s: float | None
    restart_count: int
    streak_count: int
    next_attempt_in_s: float | None
    failure_reason: str | None
    current_job: Job | None
    paused: bool
    why: str
    """Why it is not running, if it is not."""


@dataclass(frozen=True, slots=True)
class StatusReport:
    """All workers, in the order in which they were declared."""

    workers: tuple[WorkerStatus, ...]
    paused: bool
    unsaved: int
    """Records that the store could not take yet."""
    degraded: str | None
    """What is wrong with the store, if anything."""


# ── Events that hosts hear ───────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusChanged:
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


@dataclass(frozen=True, slots=True)
class WorkerStarted:
    """A new incarnation runs."""

    component_id: str
    generation: int
    pid: int


@dataclass(frozen=True, slots=True)
class WorkerDied:
    """A worker died, and what was decided on it."""

    death: Death
    action: str
    reason: str
    delay_s: float
    restart_count: int

    @property
    def component_id(self) -> str:
        """Whose death it was."""
        return self.death.component_id


@dataclass(frozen=True, slots=True)
class WorkerFailed:
    """A worker was given up; only a reset lifts it."""

    component_id: str
    generation: int
    reason: str


@dataclass(frozen=True, slots=True)
class WorkerStopped:
    """A worker was stopped on request; not a death."""

    component_id: str
    generation: int
    exit: Exit
    forced: int | None


@dataclass(frozen=True, slots=True)
class WorkerUnkillable:
    """A process survived SIGKILL; nothing is started in its place until it is gone."""

    component_id: str
    generation: int
    pid: int


@dataclass(frozen=True, slots=True)
class ActorReplaced:
    """One of our own actors raised and was replaced, with its state rebuilt."""

    actor: str
    error: str


@dataclass(frozen=True, slots=True)
class StoreDegraded:
    """The store takes nothing at the moment; supervision goes on from memory."""

    reason: str
    unsaved: int


@dataclass(frozen=True, slots=True)
class StoreRecovered:
    """Everything that was waiting has been kept."""


Event = (
    StatusChanged
    | WorkerStarted
    | WorkerDied
    | WorkerFailed
    | WorkerStopped
    | WorkerUnkillable
    | ActorReplaced
    | StoreDegraded
    | StoreRecovered
)

# ── To the Broker ────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Tell this receiver every event from now on."""

    receiver: Receiver


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """Stop telling it."""

    receiver: Receiver


BrokerMessage = Subscribe | Unsubscribe | Event

# ── To the HealthMonitor and the Recorder, once, before anything else ────────────────────


@dataclass(frozen=True, slots=True)
class Attend:
    """This is the Supervisor to tell."""

    supervisor: Receiver


# ── To the HealthMonitor ─────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Register:
    """Watch this incarnation. Refused while the worker is failed."""

    component_id: str
    generation: int
    policy: HealthPolicy
    reports_health: bool


@dataclass(frozen=True, slots=True)
class Unregister:
    """Forget the worker without a word; its end is expected, or it was reset."""

    component_id: str


@dataclass(frozen=True, slots=True)
class MarkFailed:
    """The worker will not be started again."""

    component_id: str


@dataclass(frozen=True, slots=True)
class SetPaused:
    """While a worker is paused its silence means nothing."""

    component_id: str
    paused: bool


@dataclass(frozen=True, slots=True)
class FrameReceived:
    """A worker said something about itself."""

    component_id: str
    generation: int
    frame: Frame


@dataclass(frozen=True, slots=True)
class ChannelClosed:
    """A worker's channel ended although its process still runs."""

    component_id: str
    generation: int


@dataclass(frozen=True, slots=True)
class ProtocolViolated:
    """A worker sent too much that cannot be understood."""

    component_id: str
    generation: int
    detail: str


@dataclass(frozen=True, slots=True)
class DeadlineReached:
    """Timer: some worker's deadline may have passed."""

    due: float


# ── Of a process's life, to its proxy and the HealthMonitor ──────────────────────────────


@dataclass(frozen=True, slots=True)
class ProcessStarted:
    """The process is there."""

    component_id: str
    generation: int
    pid: int


@dataclass(frozen=True, slots=True)
class SpawnFailed:
    """The process could not be started; the text is the system's own."""

    component_id: str
    generation: int
    error: str


@dataclass(frozen=True, slots=True)
class ProcessExited:
    """The process ended and was reaped."""

    component_id: str
    generation: int
    exit: Exit
    output: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProcessFound:
    """What runs under this id now; generation None is nothing. The answer to a rebuild's question."""

    component_id: str
    generation: int | None
    pid: int | None = None


MonitorMessage = (
    Attend
    | Register
    | Unregister
    | MarkFailed
    | SetPaused
    | FrameReceived
    | ChannelClosed
    | ProtocolViolated
    | DeadlineReached
    | ProcessStarted
    | SpawnFailed
    | ProcessExited
    | ProcessFound
)

# ── To a WorkerProxy ─────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class StartProcess:
    """Start this incarnation."""

    generation: int


@dataclass(frozen=True, slots=True)
class StopProcess:
    """End this incarnation, step by step."""

    generation: int
    urgency: Urgency


@dataclass(frozen=True, slots=True)
class PauseProcess:
    """Tell the worker to idle, or to go on."""

    generation: int
    paused: bool


@dataclass(frozen=True, slots=True)
class LadderElapsed:
    """Timer: a step of the stop ladder has waited long enough."""

    generation: int
    step: int


ProxyMessage = (
    StartProcess
    | StopProcess
    | PauseProcess
    | LadderElapsed
    | ProcessStarted
    | SpawnFailed
    | ProcessExited
    | ProcessFound
)

# ── To the Supervisor, from our own actors ───────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class ProcessGone:
    """Nothing is left of this incarnation; `forced` is the signal of ours that ended it."""

    component_id: str
    generation: int
    exit: Exit
    forced: int | None = None


@dataclass(frozen=True, slots=True)
class RegistrationRefused:
    """The HealthMonitor holds the worker for failed."""

    component_id: str
    generation: int


@dataclass(frozen=True, slots=True)
class JobChanged:
    """A worker took or left a job."""

    component_id: str
    generation: int
    job: Job | None


@dataclass(frozen=True, slots=True)
class BackoffElapsed:
    """Timer: the delay before a restart is over."""

    component_id: str
    generation: int
    attempt: int


@dataclass(frozen=True, slots=True)
class HealthSustained:
    """Timer: a worker stayed healthy for as long as its policy asks."""

    component_id: str
    generation: int


@dataclass(frozen=True, slots=True)
class SaveOverdue:
    """Timer: the store did not answer in time; supervision goes on from memory."""

    component_id: str
    generation: int


@dataclass(frozen=True, slots=True)
class BatchKept:
    """These deaths, as (component_id, generation), are in the store now."""

    deaths: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Declare:
    """The workers to supervise, and what is remembered of them; once, before anything else."""

    specs: tuple[WorkerSpec, ...]
    remembered: Remembered


@dataclass(frozen=True, slots=True)
class MonitorReplaced:
    """The HealthMonitor lost its state and asks for its registrations."""


SupervisorMessage = (
    HostCommand
    | Declare
    | StatusChanged
    | ProcessStarted
    | ProcessGone
    | ProcessFound
    | WorkerUnkillable
    | RegistrationRefused
    | JobChanged
    | BackoffElapsed
    | HealthSustained
    | SaveOverdue
    | BatchKept
    | StoreDegraded
    | StoreRecovered
    | MonitorReplaced
)

# ── To the Recorder ──────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Keep:
    """Write this record as soon as possible."""

    record: Record


@dataclass(frozen=True, slots=True)
class CommitBatch:
    """To itself: commit all that has been queued until now."""


@dataclass(frozen=True, slots=True)
class RetryCommit:
    """Timer: try again what could not be written."""

    attempt: int


@dataclass(frozen=True, slots=True)
class FlushMirror:
    """Timer: write the health mirror's changes."""


@dataclass(frozen=True, slots=True)
class Flush:
    """Write everything now, as far as possible, and answer with `Flushed`."""

    reply_to: Receiver


@dataclass(frozen=True, slots=True)
class Flushed:
    """What could not be written."""

    unsaved: int


RecorderMessage = Attend | Keep | CommitBatch | RetryCommit | FlushMirror | Flush
