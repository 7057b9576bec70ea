"""An alert: one episode of a problem. `rules.alerts` opens, counts and resolves it."""

from __future__ import annotations

from enum import IntEnum, StrEnum

import msgspec

from ..deaths.death import Job


class Severity(IntEnum):
    """How severe an alert is; greater is worse."""

    INFO = 0
    WARNING = 1
    CRITICAL = 2

    @property
    def word(self) -> str:
        """The name that is shown and sent."""
        return self.name.lower()


class AlertKind(StrEnum):
    """What an alert is about; a worker or queue has at most one active episode of each kind."""

    CRASHED = "crashed"
    UNKILLABLE = "unkillable"
    RESOURCE = "resource"
    TOXIC = "toxic"
    """Jobs of a queue on which too many workers died."""
    BREAKER = "breaker"
    """Something that workers need is away; their crashes are part of it."""
    OVERDUE = "overdue"
    """A scheduled worker has not succeeded for two periods."""
    STORE = "store"
    LOG = "log"
    """A log file of a worker cannot be written."""
    SCARCITY = "scarcity"
    """The machine has no descriptor, process or memory for another worker."""
    INTERNAL = "internal"
    NODE = "node"
    """A node of the cluster is lost or suspect; `component_id` is `node:NAME`."""
    UNPLACED = "unplaced"
    """No node of the cluster takes a worker."""
    ENGINE = "engine"
    """What reserves room on the machines of the cluster is away."""
    SHARED_DATABASE = "shared_database"
    """This node cannot reach the database of its cluster."""
    SHIP_LAG = "ship_lag"
    """The database of the cluster lacks the latest history of this node."""


class Happening(StrEnum):
    """What happened to an alert."""

    OPENED = "opened"
    REPEATED = "repeated"
    ESCALATED = "escalated"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"
    AMENDED = "amended"
    """More is known of what led to it; it is not worse, and nothing happened again."""


TOLD = (Happening.OPENED, Happening.ESCALATED, Happening.RESOLVED)
"""What alert sinks deliver by default."""


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """One episode."""

    id: int
    kind: AlertKind
    component_id: str | None
    severity: Severity
    message: str
    """One line: what is wrong."""
    reason: str = ""
    """Why, and what was decided."""
    opened_at_wall_ms: int
    last_at_wall_ms: int
    occurrences: int = 1
    recent_count: int = 0
    """Deaths of this worker within the last hour, or the time that the policy sets."""
    queue: str | None = None
    """The queue that the alert is about, if any."""
    breaker: str | None = None
    """The breaker that the alert is about, if any."""
    work_item: Job | None = None
    """What the worker worked on."""
    assignee_cleared: bool | None = None
    """Whether the work item was released for other workers; None if there was none."""
    restart_available: bool = False
    """Whether a manual restart makes sense now."""
    escalated: bool = False
    acknowledged_at_wall_ms: int | None = None
    acknowledged_by: str | None = None
    resolved_at_wall_ms: int | None = None

    @property
    def key(self) -> tuple[str | None, AlertKind, str | None]:
        """Identifies the episode while it is active."""
        return (self.component_id, self.kind, self.queue or self.breaker)

    @property
    def is_active(self) -> bool:
        """Whether it is not resolved."""
        return self.resolved_at_wall_ms is None

    @property
    def is_loud(self) -> bool:
        """Whether it is neither resolved nor acknowledged."""
        return self.is_active and self.acknowledged_at_wall_ms is None
