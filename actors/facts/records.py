"""What is kept: the records that a `Store` commits, and what it gives back at a start.

All times are wall-clock milliseconds, integers; a monotonic value never gets here.
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
from .jobs import DEFAULT_CRASH_RETRIES
from .usage import Usage


class DeathRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A death with the decision on it: one row, one event and the counters, in one transaction.

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
    """What was to be released because of it, and what came of that; noted later."""
    released: str | None = None
    bundle: Bundle | None = None
    """What is known of it; kept beside the row, in the same transaction, and asked for by itself."""
    version: str | None = None
    """The fingerprint of what died; kept with the failure if the worker is given up for it."""
    unsent: ClassVar[frozenset[str]] = frozenset({"bundle", "version"})
    """What nobody is sent with it."""


class DeathAmended(msgspec.Struct, frozen=True, kw_only=True):
    """How the process of a death that was decided before its end did end at last."""

    component_id: str
    generation: int
    exit_code: int | None
    signal: int | None
    bundle: Bundle | None = None
    """In place of the one that was kept with the death."""


class EndKept(msgspec.Struct, frozen=True):
    """How a worker ended that an operator wanted to end: evidence without a death."""

    bundle: Bundle

    @property
    def component_id(self) -> str:
        """Whose end it was."""
        return self.bundle.component_id


class ReleaseNoted(msgspec.Struct, frozen=True):
    """What came of the work item that a dead worker held."""

    component_id: str
    generation: int
    work_item: str
    outcome: str


class RestartsCounted(msgspec.Struct, frozen=True, kw_only=True):
    """Restarts whose death rows were given up to keep a long outage within bounds."""

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
    """An operator, or a changed version, cleared counters and failure; a worker without a row gets none."""

    component_id: str
    at_wall_ms: int


class StateRemoved(msgspec.Struct, frozen=True):
    """The worker is gone for good; its restart state goes with it, its deaths stay."""

    component_id: str


class MetaSet(msgspec.Struct, frozen=True):
    """A named setting; None removes it."""

    key: str
    value: str | None


class HealthMirrored(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's health as people may read it. No decision ever does."""

    component_id: str
    generation: int
    status: str
    pid: int | None
    current_job: Job | None
    last_heartbeat_wall_ms: int | None


class MirrorWiped(msgspec.Struct, frozen=True):
    """A new start: nothing of the former run's health holds."""


class UsageNoted(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker used at some time; of two at the same millisecond the first one is kept."""

    component_id: str
    generation: int
    at_wall_ms: int
    usage: Usage
    peak_memory_mb: float
    """The most memory that this incarnation had used until then."""


class EventRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An event under its number, as text. Committing the same number twice changes nothing."""

    id: int
    at_wall_ms: int
    type: str
    component_id: str | None
    payload: str
    """Its other fields, a JSON object."""
    schema_version: int = 1


class EventPage(msgspec.Struct, frozen=True):
    """Some of the events that are kept, oldest first, and which ones there are at all."""

    events: tuple[EventRecord, ...]
    oldest: int
    """The smallest number that is kept; 0 if there is none."""
    newest: int


class Lives(msgspec.Struct, frozen=True):
    """Lives of a worker that ended in death: how many, and how long they were together."""

    deaths: int = 0
    uptime_ms: int = 0


class ClaimsReleased(msgspec.Struct, frozen=True, kw_only=True):
    """An incarnation is gone: the jobs that it had claimed go back, or are convicted.

    Committing it twice changes nothing: the second time there is no claim left.
    """

    component_id: str
    generation: int
    run: str
    at_wall_ms: int
    counted: bool
    """Whether the end was a crash, which counts against the jobs that were being executed."""
    crash_retries: int | None = DEFAULT_CRASH_RETRIES
    cause: str = ""
    exit_code: int | None = None
    signal: int | None = None
    output: tuple[str, ...] = ()


class FormerClaimsReleased(msgspec.Struct, frozen=True, kw_only=True):
    """A new start: every claim of another run is void, and its worker counts as crashed."""

    run: str
    """The mark of the run that has begun; its own claims stand."""
    at_wall_ms: int
    crash_retries: Mapping[str, int | None]
    """By worker; the default for those who are not in it."""

    def of(self, component_id: str, generation: int) -> ClaimsReleased:
        """What it means for one of those incarnations: nobody saw how it ended."""
        return ClaimsReleased(
            component_id=component_id,
            generation=generation,
            run="",
            at_wall_ms=self.at_wall_ms,
            counted=True,
            crash_retries=self.crash_retries.get(component_id, DEFAULT_CRASH_RETRIES),
            cause="ended with its supervisor",
        )


class AlertKept(msgspec.Struct, frozen=True):
    """An alert as it is now."""

    alert: Alert


class AlertsForgotten(msgspec.Struct, frozen=True):
    """Alerts that are over and too old to be shown."""

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
)
JobRecord = ClaimsReleased | FormerClaimsReleased
AlertRecord = AlertKept | AlertsForgotten
Record = RestartRecord | JobRecord | AlertRecord


class RememberedWorker(msgspec.Struct, frozen=True, kw_only=True):
    """What the store knows of one worker's restarts."""

    restart_count: int = 0
    streak_count: int = 0
    last_restart_wall_ms: int | None = None
    failed_at_wall_ms: int | None = None
    failure_reason: str | None = None
    failed_fingerprint: str | None = None
    """Which version of it was given up, if that is known."""
    last_generation: int = 0
    """The highest generation with a death row, 0 if there is none."""
    recent_deaths_wall_ms: tuple[int, ...] = ()
    """The last deaths, oldest first, at most RECENT_DEATHS of them."""
    restart_due_wall_ms: int | None = None
    """When the restart decided on the last death was due, if it was to be restarted."""


RECENT_DEATHS = 100


class Remembered(msgspec.Struct, frozen=True):
    """Everything that a start needs to know of the past."""

    workers: Mapping[str, RememberedWorker] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    meta: Mapping[str, str] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    last_event_id: int = 0
    """The number of the latest event, 0 if there never was one."""
    generations: Mapping[str, int] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    """The latest generation that left a trace other than a death: one that was stopped, or that ran
    when a supervisor was killed."""

    def of(self, component_id: str) -> RememberedWorker:
        """What is known of one worker; its generations go on, whatever became of the last one."""
        known = self.workers.get(component_id, RememberedWorker())
        latest = max(known.last_generation, self.generations.get(component_id, 0))
        return replace(known, last_generation=latest)
