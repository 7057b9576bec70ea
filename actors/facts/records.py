"""The records that a `Store` commits, and what it returns at a start.

All times are integer wall-clock milliseconds, never monotonic ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

import msgspec
from msgspec.structs import replace

from ..deaths.crash_bundle import Bundle
from ..deaths.death import Action, Cause, Job
from .alert import Alert
from .audit_entry import AuditEntry
from .generations import EVERY_OTHER, GenerationRecord, LostLife
from .jobs import DEFAULT_CRASH_RETRIES, ErrorRetries
from .runs import RunKept
from .usage import Usage


class DeathRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A death and its decision: one row, one event and the counters, in one transaction.

    Committing the same (component, generation) twice changes nothing, so a commit whose
    outcome is unknown may be repeated.
    """

    component_id: str
    generation: int
    died_at_wall_ms: int
    cause: Cause
    exit_code: int | None
    signal: int | None
    uptime_ms: int
    job: Job | None
    action: Action
    """RESTART counts a restart, MARK_FAILED sets the failure fields; the others only add the row."""
    reason: str
    delay_ms: int = 0
    streak_cleared: bool = False
    """Sustained health cleared the streak before this death was counted."""
    work_item: str | None = None
    """The work item to release; the outcome is recorded later."""
    released: str | None = None
    bundle: Bundle | None = None
    """The evidence; committed in the same transaction and queried separately."""
    version: str | None = None
    """The fingerprint of what died; stored with the failure if the worker is given up."""
    node: str | None = None
    """The node of a cluster on which it happened, if the question was asked of a node; not stored."""
    unsent: ClassVar[frozenset[str]] = frozenset({"bundle", "version"})
    """Fields that are not sent to clients."""


class DeathAmended(msgspec.Struct, frozen=True, kw_only=True):
    """How the process ended, for a death that was decided before that."""

    component_id: str
    generation: int
    exit_code: int | None
    signal: int | None
    bundle: Bundle | None = None
    """Replaces the bundle of the death."""


class EndKept(msgspec.Struct, frozen=True):
    """How a worker ended that an operator stopped: evidence without a death."""

    bundle: Bundle

    @property
    def component_id(self) -> str:
        """Whose end it was."""
        return self.bundle.component_id


class ReleaseNoted(msgspec.Struct, frozen=True):
    """The outcome of releasing a dead worker's work item."""

    component_id: str
    generation: int
    work_item: str
    outcome: str


class RestartsCounted(msgspec.Struct, frozen=True, kw_only=True):
    """Restarts whose death rows were dropped to bound the memory during a long outage."""

    component_id: str
    restarts: int
    streak: int
    at_wall_ms: int
    last_generation: int


class StreakCleared(msgspec.Struct, frozen=True):
    """Sustained health cleared the streak; the lifetime count stays."""

    component_id: str
    at_wall_ms: int


class RestartReset(msgspec.Struct, frozen=True):
    """An operator or a changed version cleared counters and failure; creates no row."""

    component_id: str
    at_wall_ms: int


class StateRemoved(msgspec.Struct, frozen=True):
    """The worker was removed: delete the mirror of its health.

    Its counters, its failure and its deaths belong to the id: a worker that is added again under it
    continues with them, and only a reset clears them.
    """

    component_id: str


class MetaSet(msgspec.Struct, frozen=True):
    """A named setting; None removes it."""

    key: str
    value: str | None


class HealthMirrored(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's health for display; no decision reads it."""

    component_id: str
    generation: int
    status: str
    pid: int | None
    current_job: Job | None
    last_heartbeat_wall_ms: int | None


class MirrorWiped(msgspec.Struct, frozen=True):
    """A new run: delete the health of the previous one."""


class UsageNoted(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker used at some time; of two in the same millisecond the first is kept."""

    component_id: str
    generation: int
    at_wall_ms: int
    usage: Usage
    peak_memory_mb: float
    """The most memory that this incarnation had used until then."""


class EventRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A numbered event as text. Committing the same number twice changes nothing."""

    id: int
    at_wall_ms: int
    type: str
    component_id: str | None
    payload: str
    """Its other fields, a JSON object."""
    schema_version: int = 1
    """Incremented when a field changes its meaning or is removed, not for new fields or types."""


class EventPage(msgspec.Struct, frozen=True):
    """A page of stored events, oldest first, and the range of all stored ones."""

    events: tuple[EventRecord, ...]
    oldest: int
    """The smallest stored number; 0 if there is none."""
    newest: int


class Lives(msgspec.Struct, frozen=True):
    """A worker's lives that ended in death: their number and total uptime."""

    deaths: int = 0
    uptime_ms: int = 0


class ClaimsReleased(msgspec.Struct, frozen=True, kw_only=True):
    """An incarnation is gone: its claimed jobs are requeued or convicted.

    Committing it twice changes nothing: the second time there is no claim left.
    """

    component_id: str
    generation: int
    run: str
    at_wall_ms: int
    counted: bool
    """Whether the end was a crash. It counts against a job only if the store has a record of the death."""
    crash_retries: int | None = DEFAULT_CRASH_RETRIES
    cause: str = ""
    exit_code: int | None = None
    signal: int | None = None
    output: tuple[str, ...] = ()
    begun: tuple[tuple[int, int], ...] | None = None
    """The number and attempt of the jobs that it had begun: no other counts. None: not known, all count."""
    error_retries: ErrorRetries = ErrorRetries()
    is_late: bool = False
    """Whether it ended at an earlier time, which is not known."""

    def may_blame(self, job_id: int, attempt: int) -> bool:
        """Whether this end can count against an execution: it was a crash, and the execution had begun."""
        return self.counted and (self.begun is None or (job_id, attempt) in self.begun)


class FormerClaimsReleased(msgspec.Struct, frozen=True, kw_only=True):
    """A new run: every claim of another run is void.

    It counts against the job only if the former run recorded the death of the worker and did not release
    the claim. A worker that ended with its supervisor is not a reason to suspect the job.
    """

    run: str
    """The id of the new run; its own claims stay valid."""
    at_wall_ms: int
    crash_retries: Mapping[str, int | None]
    """By worker; the default for workers that are not in it."""

    def of(self, component_id: str, generation: int) -> ClaimsReleased:
        """The record for one of those incarnations; the cause is that of its recorded death."""
        return ClaimsReleased(
            component_id=component_id,
            generation=generation,
            run="",
            at_wall_ms=self.at_wall_ms,
            counted=True,
            crash_retries=self.crash_retries.get(component_id, DEFAULT_CRASH_RETRIES),
            is_late=True,
        )


class AlertKept(msgspec.Struct, frozen=True):
    """The current state of an alert."""

    alert: Alert


class AlertsForgotten(msgspec.Struct, frozen=True):
    """Resolved alerts that are too old to be shown."""

    ids: tuple[int, ...]


RestartRecord = (
    DeathRecord
    | DeathAmended
    | EndKept
    | ReleaseNoted
    | RestartsCounted
    | StreakCleared
    | RestartReset
    | StateRemoved
    | MetaSet
    | HealthMirrored
    | MirrorWiped
    | AuditEntry
    | EventRecord
    | UsageNoted
    | RunKept
    | GenerationRecord
)
JobRecord = ClaimsReleased | FormerClaimsReleased
AlertRecord = AlertKept | AlertsForgotten
Record = RestartRecord | JobRecord | AlertRecord


class RememberedWorker(msgspec.Struct, frozen=True, kw_only=True):
    """The stored restart state of one worker."""

    restart_count: int = 0
    streak_count: int = 0
    last_restart_wall_ms: int | None = None
    failed_at_wall_ms: int | None = None
    failure_reason: str | None = None
    failed_fingerprint: str | None = None
    """The version that was given up, if known."""
    last_generation: int = 0
    """The highest generation with a death row, 0 if there is none."""
    recent_deaths_wall_ms: tuple[int, ...] = ()
    """The last deaths, oldest first, at most RECENT_DEATHS."""
    restart_due_wall_ms: int | None = None
    """When the restart after the last death was due, if one was decided."""
    timetable: str | None = None
    """The timetable of its schedule, as another node of a cluster kept it."""
    scheduled_since_wall_ms: int | None = None
    """Since when its schedule counts, if no run was due yet on the other node."""


RECENT_DEATHS = 100


class Remembered(msgspec.Struct, frozen=True):
    """The stored state that a start needs."""

    workers: Mapping[str, RememberedWorker] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    meta: Mapping[str, str] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    last_event_id: int = 0
    """The number of the latest event, 0 if there never was one."""
    generations: Mapping[str, int] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    """The highest generation that may have been used, if it had no death: one that was stopped, or that
    a supervisor reserved and did not give back. `EVERY_OTHER` has the one of workers that are not in it."""
    lost: tuple[LostLife, ...] = ()
    """Processes that ended with a supervisor."""
    seen_at_wall_ms: int = 0
    """The last sign of life of the former supervisor."""
    started: Mapping[str, int] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    """The latest generation of each worker whose start is recorded; `generations` may be far ahead."""

    def of(self, component_id: str) -> RememberedWorker:
        """The state of one worker; its generations continue after the latest one, however that ended."""
        known = self.workers.get(component_id, RememberedWorker())
        unnamed = self.generations.get(EVERY_OTHER, 0)
        latest = max(known.last_generation, self.generations.get(component_id, unnamed))
        return replace(known, last_generation=latest)
