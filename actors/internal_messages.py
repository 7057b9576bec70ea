"""What our actors say among themselves, grouped by who hears it.

Whatever concerns one incarnation carries (component_id, generation), and what belongs to an
older one is dropped by its hearer. Timers are events too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

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


class Attend(msgspec.Struct, frozen=True):
    """These are the Supervisor, the Broker and the JobDesk to tell."""

    supervisor: Receiver
    broker: Receiver
    desk: Receiver


# ── To the HealthMonitor ─────────────────────────────────────────────────────────────────


class Register(msgspec.Struct, frozen=True):
    """Watch this incarnation. Refused while the worker is failed."""

    component_id: str
    generation: int
    policy: HealthPolicy
    reports_health: bool


class Unregister(msgspec.Struct, frozen=True):
    """Forget the worker without a word; its end is expected, or it was reset."""

    component_id: str


class MarkFailed(msgspec.Struct, frozen=True):
    """The worker will not be started again."""

    component_id: str


class SetPaused(msgspec.Struct, frozen=True):
    """While a worker is paused its silence means nothing."""

    component_id: str
    paused: bool


class FrameReceived(msgspec.Struct, frozen=True):
    """A worker said something about itself."""

    component_id: str
    generation: int
    frame: Frame


class ChannelClosed(msgspec.Struct, frozen=True):
    """A worker's channel ended although its process still runs."""

    component_id: str
    generation: int


class ProtocolViolated(msgspec.Struct, frozen=True):
    """A worker sent too much that cannot be understood."""

    component_id: str
    generation: int
    detail: str


class Condemn(msgspec.Struct, frozen=True):
    """This incarnation is being killed for using too much; that is the cause of the death to come."""

    component_id: str
    generation: int
    detail: str


class MirrorDue(msgspec.Struct, frozen=True):
    """Timer: write the changes of health for people to read."""


class DeadlineReached(msgspec.Struct, frozen=True):
    """Timer: some worker's deadline may have passed."""

    due: float


# ── Of a process's life, to its proxy and the HealthMonitor ──────────────────────────────


class ProcessStarted(msgspec.Struct, frozen=True):
    """The process is there."""

    component_id: str
    generation: int
    pid: int


class SpawnFailed(msgspec.Struct, frozen=True):
    """The process could not be started; the text is the system's own."""

    component_id: str
    generation: int
    error: str


class ProcessExited(msgspec.Struct, frozen=True):
    """The process ended and was reaped."""

    component_id: str
    generation: int
    exit: Exit
    remains: Remains | None = None


class ProcessFound(msgspec.Struct, frozen=True):
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


class StartProcess(msgspec.Struct, frozen=True):
    """Start this incarnation."""

    generation: int


class StopProcess(msgspec.Struct, frozen=True):
    """End this incarnation, step by step; one that hangs says first where."""

    generation: int
    urgency: Urgency
    hung: bool = False


class UseSpec(msgspec.Struct, frozen=True):
    """From the next start on, this is what the worker is."""

    spec: WorkerSpec


class PauseProcess(msgspec.Struct, frozen=True):
    """Tell the worker to idle, or to go on."""

    generation: int
    paused: bool


class ReportProcess(msgspec.Struct, frozen=True):
    """Tell the Supervisor `ProcessReported`: what runs now."""


class LadderElapsed(msgspec.Struct, frozen=True):
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


class ProcessGone(msgspec.Struct, frozen=True):
    """Nothing is left of this incarnation; `forced` is the signal of ours that ended it."""

    component_id: str
    generation: int
    exit: Exit
    forced: int | None = None
    remains: Remains | None = None


class ProcessReported(msgspec.Struct, frozen=True):
    """What runs under this id, by its proxy; generation None is nothing.

    `told` is the latest incarnation that the proxy was to start: what the Supervisor asked
    for since is not in the answer.
    """

    component_id: str
    generation: int | None
    told: int


class RegistrationRefused(msgspec.Struct, frozen=True):
    """The HealthMonitor holds the worker for failed."""

    component_id: str
    generation: int


class JobChanged(msgspec.Struct, frozen=True):
    """A worker took or left a job."""

    component_id: str
    generation: int
    job: Job | None


class BackoffElapsed(msgspec.Struct, frozen=True):
    """Timer: the delay before a restart is over."""

    component_id: str
    generation: int
    attempt: int


class HealthSustained(msgspec.Struct, frozen=True):
    """Timer: a worker stayed healthy for as long as its policy asks."""

    component_id: str
    generation: int


class LimitExceeded(msgspec.Struct, frozen=True):
    """An incarnation uses more than it may and is to be killed."""

    component_id: str
    generation: int
    detail: str


class RecycleDue(msgspec.Struct, frozen=True):
    """Timer, or from the ResourceMonitor: this incarnation should make room for a new one."""

    component_id: str
    generation: int
    reason: str


class SaveOverdue(msgspec.Struct, frozen=True):
    """Timer: the store may not have answered in time; supervision goes on from memory."""


class PauseElapsed(msgspec.Struct, frozen=True):
    """Timer: some pause may be over."""


class BatchKept(msgspec.Struct, frozen=True):
    """These deaths, as (component_id, generation), are in the store now."""

    deaths: tuple[tuple[str, int], ...]


class Declare(msgspec.Struct, frozen=True):
    """The workers to supervise, and what is remembered of them; once, before anything else."""

    specs: tuple[WorkerSpec, ...]
    remembered: Remembered


class MonitorReplaced(msgspec.Struct, frozen=True):
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

# ── To the JobDesk ───────────────────────────────────────────────────────────────────────


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

# ── To the QueueWatch ────────────────────────────────────────────────────────────────────


class WatchQueues(msgspec.Struct, frozen=True):
    """These queues are served, by these workers; without any there is nothing to look at."""

    queues: tuple[str, ...]
    workers: frozenset[str]


class QueuesTouched(msgspec.Struct, frozen=True):
    """Something may have changed in the queues; with these jobs, as far as they are known."""

    job_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ToxicSeen:
    """How many toxic jobs each queue has, as a look showed that began at that time."""

    by_queue: Mapping[str, int] = field(hash=False)
    looked_at_wall_ms: int


class LookAtQueues(msgspec.Struct, frozen=True):
    """Timer: it is time to look."""


WatchMessage = WatchQueues | QueuesTouched | LookAtQueues | Snapshot | StateChanged | Published

# ── To the Recorder ──────────────────────────────────────────────────────────────────────


class Keep(msgspec.Struct, frozen=True):
    """Write this record as soon as possible."""

    record: Record


class KeepTogether(msgspec.Struct, frozen=True):
    """Write these in one transaction. The Broker numbers the events among them on their way."""

    items: tuple[Record | Event, ...]


class CommitBatch(msgspec.Struct, frozen=True):
    """To itself: commit all that has been queued until now."""


class RetryCommit(msgspec.Struct, frozen=True):
    """Timer: try again what could not be written."""

    attempt: int


class PruneDue(msgspec.Struct, frozen=True):
    """Timer: something may have grown too old to be kept."""


class KeepMirror(msgspec.Struct, frozen=True):
    """Write these states of health when it is convenient; the latest one of a worker counts."""

    states: tuple[HealthMirrored, ...]


class Flush(msgspec.Struct, frozen=True):
    """Write everything now, as far as possible, and answer with `Flushed`."""

    reply_to: Receiver


class Flushed(msgspec.Struct, frozen=True):
    """What could not be written."""

    unsaved: int


RecorderMessage = Attend | Keep | KeepTogether | CommitBatch | RetryCommit | PruneDue | KeepMirror | Flush
