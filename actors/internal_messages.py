"""What our actors say among themselves, grouped by who hears it.

Whatever concerns one incarnation carries (component_id, generation), and what belongs to an
older one is dropped by its hearer. Timers are events too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .breaker_messages import BreakerDue, ProbeAnswered
from .deaths import Exit, Job
from .evidence import Remains
from .frames import Frame
from .jobs import JobSettled
from .lifecycle import Urgency
from .limits import ResourceLimits
from .messages import (
    Event,
    HostCommand,
    Published,
    Snapshot,
    StateChanged,
    StatusChanged,
    StoodDown,
    StoreDegraded,
    StoreRecovered,
    WorkerUnkillable,
)
from .ports import Receiver
from .records import HealthMirrored, Record, Remembered
from .spec import HealthPolicy, WorkerSpec

# ── To the HealthMonitor and the Recorder, once, before anything else ────────────────────


@dataclass(frozen=True, slots=True)
class Attend:
    """These are the Supervisor, the Broker and the JobDesk to tell."""

    supervisor: Receiver
    broker: Receiver
    desk: Receiver


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
class Condemn:
    """This incarnation is being killed for using too much; that is the cause of the death to come."""

    component_id: str
    generation: int
    detail: str


@dataclass(frozen=True, slots=True)
class MirrorDue:
    """Timer: write the changes of health for people to read."""


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
    remains: Remains | None = None


@dataclass(frozen=True, slots=True)
class ProcessFound:
    """What runs under this id now, by the process table; generation None is nothing."""

    component_id: str
    generation: int | None
    pid: int | None = None
    told: int = 0
    """For a proxy: the latest generation that it was to start when it asked."""


MonitorMessage = (
    Attend
    | Register
    | Unregister
    | MarkFailed
    | SetPaused
    | FrameReceived
    | ChannelClosed
    | ProtocolViolated
    | Condemn
    | DeadlineReached
    | MirrorDue
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
    """End this incarnation, step by step; one that hangs says first where."""

    generation: int
    urgency: Urgency
    hung: bool = False


@dataclass(frozen=True, slots=True)
class UseSpec:
    """From the next start on, this is what the worker is."""

    spec: WorkerSpec


@dataclass(frozen=True, slots=True)
class PauseProcess:
    """Tell the worker to idle, or to go on."""

    generation: int
    paused: bool


@dataclass(frozen=True, slots=True)
class ReportProcess:
    """Tell the Supervisor `ProcessReported`: what runs now."""


@dataclass(frozen=True, slots=True)
class LadderElapsed:
    """Timer: a step of the stop ladder has waited long enough."""

    generation: int
    step: int


ProxyMessage = (
    StartProcess
    | StopProcess
    | PauseProcess
    | UseSpec
    | ReportProcess
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
    remains: Remains | None = None


@dataclass(frozen=True, slots=True)
class ProcessReported:
    """What runs under this id, by its proxy; generation None is nothing.

    `told` is the latest incarnation that the proxy was to start: what the Supervisor asked
    for since is not in the answer.
    """

    component_id: str
    generation: int | None
    told: int


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
class LimitExceeded:
    """An incarnation uses more than it may and is to be killed."""

    component_id: str
    generation: int
    detail: str


@dataclass(frozen=True, slots=True)
class RecycleDue:
    """Timer, or from the ResourceMonitor: this incarnation should make room for a new one."""

    component_id: str
    generation: int
    reason: str


@dataclass(frozen=True, slots=True)
class SaveOverdue:
    """Timer: the store may not have answered in time; supervision goes on from memory."""


@dataclass(frozen=True, slots=True)
class PauseElapsed:
    """Timer: some pause may be over."""


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
    """The HealthMonitor was made anew and may have missed something."""


SupervisorMessage = (
    HostCommand
    | BreakerDue
    | ProbeAnswered
    | Declare
    | StatusChanged
    | ProcessStarted
    | ProcessGone
    | ProcessReported
    | WorkerUnkillable
    | RegistrationRefused
    | JobChanged
    | BackoffElapsed
    | HealthSustained
    | LimitExceeded
    | RecycleDue
    | SaveOverdue
    | PauseElapsed
    | BatchKept
    | StoreDegraded
    | StoreRecovered
    | StoodDown
    | MonitorReplaced
)

# ── To the ResourceMonitor ───────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class WatchUsage:
    """Look at this incarnation now and then."""

    component_id: str
    generation: int
    limits: ResourceLimits
    recycle_above_mb: float | None


@dataclass(frozen=True, slots=True)
class UnwatchUsage:
    """This incarnation is gone."""

    component_id: str
    generation: int


@dataclass(frozen=True, slots=True)
class LookDue:
    """Timer: time for the next look at one worker."""

    component_id: str
    generation: int


ResourceMessage = WatchUsage | UnwatchUsage | LookDue

# ── To the JobDesk ───────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class IncarnationEnded:
    """A worker that serves queues is gone: what it had claimed is to be released."""

    component_id: str
    generation: int
    counted: bool
    """Whether it was a crash."""
    crash_retries: int | None
    cause: str
    exit: Exit
    output: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JobsSettled:
    """What became of jobs whose claims were released, now that it is kept."""

    settled: tuple[JobSettled, ...]


DeskMessage = IncarnationEnded | JobsSettled

# ── To the QueueWatch ────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class WatchQueues:
    """These queues are served, by these workers; without any there is nothing to look at."""

    queues: tuple[str, ...]
    workers: frozenset[str]


@dataclass(frozen=True, slots=True)
class QueuesTouched:
    """Something may have changed in the queues; with these jobs, as far as they are known."""

    job_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ToxicSeen:
    """How many toxic jobs each queue has, as a look showed that began at that time."""

    by_queue: Mapping[str, int] = field(hash=False)
    looked_at_wall_ms: int


@dataclass(frozen=True, slots=True)
class LookAtQueues:
    """Timer: it is time to look."""


WatchMessage = WatchQueues | QueuesTouched | LookAtQueues | Snapshot | StateChanged | Published

# ── To the Recorder ──────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Keep:
    """Write this record as soon as possible."""

    record: Record


@dataclass(frozen=True, slots=True)
class KeepTogether:
    """Write these in one transaction. The Broker numbers the events among them on their way."""

    items: tuple[Record | Event, ...]


@dataclass(frozen=True, slots=True)
class CommitBatch:
    """To itself: commit all that has been queued until now."""


@dataclass(frozen=True, slots=True)
class RetryCommit:
    """Timer: try again what could not be written."""

    attempt: int


@dataclass(frozen=True, slots=True)
class PruneDue:
    """Timer: something may have grown too old to be kept."""


@dataclass(frozen=True, slots=True)
class KeepMirror:
    """Write these states of health when it is convenient; the latest one of a worker counts."""

    states: tuple[HealthMirrored, ...]


@dataclass(frozen=True, slots=True)
class Flush:
    """Write everything now, as far as possible, and answer with `Flushed`."""

    reply_to: Receiver


@dataclass(frozen=True, slots=True)
class Flushed:
    """What could not be written."""

    unsaved: int


RecorderMessage = Attend | Keep | KeepTogether | CommitBatch | RetryCommit | PruneDue | KeepMirror | Flush
