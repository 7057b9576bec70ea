"""What hosts tell the Supervisor, and what they hear: commands, replies, events.

Commands are verbs, events past tense. All are immutable: pykka does not copy what it
delivers. `internal_messages` has what our actors say among themselves.

A command's `reply_to` is told `Done`, `Refused` or the reply that the command names; a
host's own actor may put its ref there, or leave it out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, get_args

import msgspec

from .alert import Alert, Happening
from .changes import Changes
from .deaths import Death, Exit, Job
from .evidence import Versions, no_versions
from .health import Status
from .lifecycle import Urgency
from .ports import Receiver
from .records import EventRecord, UsageNoted
from .resources import Usage
from .spec import WorkerSpec
from .states import State
from .verdict import Confidence, Finding

if TYPE_CHECKING:
    from typing_extensions import TypeIs

# ── What a host may tell the Supervisor ──────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class StartWorkers:
    """Start these workers, or all of them; what runs already is left alone.

    With `versions`, a failed worker that is another version now may be tried afresh.
    """

    ids: tuple[str, ...] | None = None
    reply_to: Receiver | None = None
    versions: Versions = field(default_factory=no_versions, hash=False)


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
    """Pause these workers, or the whole system; remembered across restarts, ends by itself if told so."""

    ids: tuple[str, ...] | None = None
    reply_to: Receiver | None = None
    reason: str = ""
    for_s: float | None = None


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
    versions: Versions = field(default_factory=no_versions, hash=False)


@dataclass(frozen=True, slots=True)
class RemoveWorker:
    """Stop a worker and forget it, its restart state included."""

    component_id: str
    reply_to: Receiver | None = None


@dataclass(frozen=True, slots=True)
class ChangeWorkers:
    """Supervise exactly these workers from now on. The reply is `WorkersChanged`.

    What did not change is left alone; new ones are started, missing ones stopped and forgotten;
    one whose command changed is restarted, without counting; a changed policy holds from the
    next decision on. With `versions`, a failed worker that is another version now may be tried
    afresh.
    """

    specs: tuple[WorkerSpec, ...]
    reply_to: Receiver | None = None
    versions: Versions = field(default_factory=no_versions, hash=False)


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
    | ChangeWorkers
    | ReportStatus
    | Shutdown
)

# ── What a host may tell the AlertDesk ───────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class AcknowledgeAlert:
    """Take note of an alert: it makes no more noise, and stays until it is over."""

    alert_id: int
    by: str
    reply_to: Receiver | None = None


@dataclass(frozen=True, slots=True)
class ReportAlerts:
    """Answer with `AlertReport`."""

    reply_to: Receiver


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
    relaunched: bool = False
    """Somebody wanted it back before it had ended: it was started again."""

    @property
    def killed(self) -> bool:
        """Whether it took SIGKILL."""
        return self.forced == 9


@dataclass(frozen=True, slots=True)
class WorkersStopped:
    """All the workers that were to stop have stopped."""

    results: tuple[StopResult, ...]


@dataclass(frozen=True, slots=True)
class WorkersChanged:
    """What a changed set of specs led to."""

    changes: Changes


class Budget(msgspec.Struct, frozen=True):
    """How much of each limit is used up; a limit of None is no limit."""

    in_window: int
    max_in_window: int | None
    window_s: float
    lifetime: int
    max_lifetime: int | None
    consecutive: int
    max_consecutive: int | None


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
    budget: Budget
    waits_for: tuple[str, ...] = ()
    """Workers that are not healthy yet, which its start waits for."""
    pause_reason: str = ""
    pause_ends_in_s: float | None = None
    retried_if_changed: bool = False
    """It is failed, and a changed version of it will be tried by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerStatus:
    """A breaker that is open: restarts of its workers are held back."""

    name: str
    why: str
    open_for_s: float
    held: tuple[str, ...]
    """The workers that come back when it closes."""
    canary: str | None
    """Who tries for all now; None: nobody does."""
    next_try_in_s: float | None
    """When somebody may try, if the probe (where there is one) passes by then; None while one does."""


@dataclass(frozen=True, slots=True)
class StatusReport:
    """All workers, in the order in which they were declared."""

    workers: tuple[WorkerStatus, ...]
    paused: bool
    unsaved: int
    """Records that the store could not take yet."""
    degraded: str | None
    """What is wrong with the store, if anything."""
    breakers: tuple[BreakerStatus, ...] = ()
    """Those that are open."""


@dataclass(frozen=True, slots=True)
class AlertReport:
    """The alerts that are not over, and the latest of those that are; the worst first."""

    alerts: tuple[Alert, ...]


# ── Events that hosts hear ───────────────────────────────────────────────────────────────


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


class WorkerFailed(msgspec.Struct, frozen=True):
    """A worker was given up; only a reset lifts it, or a changed version where its policy says so."""

    component_id: str
    generation: int
    reason: str


@dataclass(frozen=True, slots=True)
class WorkerStopping:
    """A worker that ran is told to end; not a death. `WorkerStopped` follows, once it has."""

    component_id: str
    generation: int
    reason: str


class WorkerStopped(msgspec.Struct, frozen=True):
    """A worker was stopped on request; not a death."""

    component_id: str
    generation: int
    exit: Exit
    forced: int | None


@dataclass(frozen=True, slots=True)
class BreakerOpened:
    """Restarts of these workers are held back: what they need seems to be away."""

    breaker: str
    reason: str
    workers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CanaryStarted:
    """One worker of an open breaker tries whether it holds."""

    breaker: str
    component_id: str


@dataclass(frozen=True, slots=True)
class BreakerClosed:
    """The canary held, and all come back."""

    breaker: str
    open_for_s: float
    workers: tuple[str, ...]
    """Those who were held back."""


@dataclass(frozen=True, slots=True)
class WorkReleased:
    """The release hook of a worker that died or was killed has answered."""

    component_id: str
    generation: int
    work_item: str
    cleared: bool
    """False: there was nothing to clear."""
    detail: str
    output: tuple[str, ...] = ()
    """The last lines of the tool."""


@dataclass(frozen=True, slots=True)
class WorkReleaseFailed:
    """A work item could not be released: its tool is missing, failed, or was cut off."""

    component_id: str
    generation: int
    work_item: str
    reason: str
    output: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StopStepTaken:
    """A worker that is to end was sent a signal, or asked for its stacks."""

    component_id: str
    generation: int
    step: str
    """`stacks` (it was asked to write its stacks down), `SIGTERM` or `SIGKILL`."""


@dataclass(frozen=True, slots=True)
class WorkerUnkillable:
    """A process survived SIGKILL; nothing is started in its place until it is gone."""

    component_id: str
    generation: int
    pid: int


@dataclass(frozen=True, slots=True)
class ResourceWarned:
    """A worker uses more than it should; `used` of `resource` is above `limit`."""

    component_id: str
    generation: int
    resource: str
    used: float
    limit: float


@dataclass(frozen=True, slots=True)
class ResourceEased:
    """A worker that was warned of uses less again."""

    component_id: str
    generation: int
    resource: str
    used: float
    limit: float


@dataclass(frozen=True, slots=True)
class ResourceViolated:
    """A worker uses more than it may, for the so-and-so-manieth look in a row."""

    component_id: str
    generation: int
    resource: str
    used: float
    limit: float
    in_a_row: int
    fatal: bool
    """It is killed for it."""


@dataclass(frozen=True, slots=True)
class ResourcesSampled:
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


@dataclass(frozen=True, slots=True)
class WorkerRecycled:
    """A worker that was well gets a new process; not a death, and not counted."""

    component_id: str
    generation: int
    reason: str


@dataclass(frozen=True, slots=True)
class JobRequeued:
    """The job that a worker held when it ended is pending again."""

    job_id: int
    queue: str
    component_id: str
    generation: int
    crash_count: int
    counted: bool = True
    """Whether the end was a crash; a worker that was stopped on request is none."""


@dataclass(frozen=True, slots=True)
class JobConvicted:
    """Too many workers died on a job: it is toxic, and not tried again by itself."""

    job_id: int
    queue: str
    component_id: str
    generation: int
    crash_count: int


@dataclass(frozen=True, slots=True)
class PauseBegan:
    """A worker is held back, or the whole system is."""

    component_id: str | None
    """None: the whole system."""
    reason: str
    for_s: float | None
    """None: until somebody resumes."""


@dataclass(frozen=True, slots=True)
class PauseEnded:
    """A pause is over: somebody resumed, or its time was up."""

    component_id: str | None
    """None: that of the whole system."""


@dataclass(frozen=True, slots=True)
class WorkerReset:
    """A worker's counters and failure were cleared."""

    component_id: str


@dataclass(frozen=True, slots=True)
class WorkerRemoved:
    """A worker is supervised no longer; its history stays, its counters do not."""

    component_id: str


@dataclass(frozen=True, slots=True)
class FailureLifted:
    """A worker that was given up is another version now; its counters and failure were cleared."""

    component_id: str
    old_fingerprint: str
    new_fingerprint: str
    reason: str
    """What changed."""


@dataclass(frozen=True, slots=True)
class AlertChanged:
    """An alert was opened, counted once more, escalated, acknowledged or resolved."""

    happening: Happening
    alert: Alert

    @property
    def component_id(self) -> str | None:
        """The worker that it is about, if it is about one."""
        return self.alert.component_id


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
class StoodDown:
    """Another supervisor took the store over; we stop our workers and start none again."""

    reason: str


@dataclass(frozen=True, slots=True)
class StoreRecovered:
    """Everything that was waiting has been kept."""


@dataclass(frozen=True, slots=True)
class EventsLost:
    """So many events, the oldest that waited for the store, were given up in a long outage."""

    count: int
    first_id: int
    last_id: int


@dataclass(frozen=True, slots=True)
class GatewayLost:
    """A gateway delivers nothing at the moment, and why; nothing else waits for it."""

    gateway: str
    reason: str


@dataclass(frozen=True, slots=True)
class GatewayRestored:
    """A gateway delivers again, and where to."""

    gateway: str
    detail: str


Event = (
    StatusChanged
    | WorkerStarted
    | WorkerDied
    | WorkerFailed
    | WorkerStopping
    | WorkerStopped
    | StopStepTaken
    | WorkerUnkillable
    | BreakerOpened
    | CanaryStarted
    | BreakerClosed
    | WorkReleased
    | WorkReleaseFailed
    | WorkerRecycled
    | WorkerReset
    | FailureLifted
    | WorkerRemoved
    | PauseBegan
    | PauseEnded
    | ResourceWarned
    | ResourceEased
    | ResourceViolated
    | ResourcesSampled
    | JobRequeued
    | JobConvicted
    | AlertChanged
    | ActorReplaced
    | StoreDegraded
    | StoreRecovered
    | StoodDown
    | EventsLost
    | GatewayLost
    | GatewayRestored
)

_EVENTS = frozenset(get_args(Event))


def is_event(said: object) -> TypeIs[Event]:
    """Whether it is an event; by its type, since a union of thirty is looked through one by one."""
    return type(said) in _EVENTS


Passing = ResourcesSampled
"""Events that are told to whoever listens without a number: there are too many for the log."""

# ── What subscribers to topics hear ──────────────────────────────────────────────────────


class Published(msgspec.Struct, frozen=True):
    """An event under its number. Numbers grow by one, across restarts of the supervisor too."""

    id: int
    at_wall_ms: int
    event: Event
    record: EventRecord
    """The same as text."""
    kept: bool = True
    """False: the store is away, and the event was told from memory."""


class StateChanged(msgspec.Struct, frozen=True):
    """The state of a topic; `state` is None once there is nothing left to have one."""

    topic: str
    type: str
    """worker_update, queue_update, job_update or system_update."""
    at_wall_ms: int
    state: State | None
    event_id: int | None = None
    """The event that it follows from, if it follows from one."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """How everything is, as the first thing that a subscriber to topics hears."""

    last_id: int
    """What happened up to this event is in it; what comes later is told."""
    states: tuple[StateChanged, ...]
    recent: tuple[Published, ...] = ()
    """The latest events of the log, if the subscriber asked for events."""
