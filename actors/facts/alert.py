"""What an alert is: one episode of something being wrong. `alerts` has what becomes of it."""

from __future__ import annotations

from enum import IntEnum, StrEnum

import msgspec

from ..deaths.death import Job


class Severity(IntEnum):
    """How much it matters; the greater the worse."""

    INFO = 0
    WARNING = 1
    CRITICAL = 2

    @property
    def word(self) -> str:
        """For people and for the wire."""
        return self.name.lower()


class Kind(StrEnum):
    """What an alert is about; one episode of each at a time and worker, or queue."""

    CRASHED = "crashed"
    UNKILLABLE = "unkillable"
    RESOURCE = "resource"
    TOXIC = "toxic"
    """Jobs of a queue that too many workers died on."""
    STORE = "store"
    INTERNAL = "internal"


class Happening(StrEnum):
    """What became of an alert."""

    OPENED = "opened"
    REPEATED = "repeated"
    ESCALATED = "escalated"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"


TOLD = (Happening.OPENED, Happening.ESCALATED, Happening.RESOLVED)
"""What is worth a message to others, unless they want more or less."""


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """One episode."""

    id: int
    kind: Kind
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
    """Deaths of this worker in the last hour, or whatever time the policy says."""
    queue: str | None = None
    """The queue that it is about, if it is about one."""
    work_item: Job | None = None
    """What the worker worked on."""
    assignee_cleared: bool | None = None
    """Whether that work was given back to be taken by others; None if there was none."""
    restart_available: bool = False
    """Whether a manual restart makes sense now."""
    escalated: bool = False
    acknowledged_at_wall_ms: int | None = None
    acknowledged_by: str | None = None
    resolved_at_wall_ms: int | None = None

    @property
    def key(self) -> tuple[str | None, Kind, str | None]:
        """What names the episode while it lasts."""
        return (self.component_id, self.kind, self.queue)

    @property
    def is_active(self) -> bool:
        """Whether it is not over."""
        return self.resolved_at_wall_ms is None

    @property
    def is_loud(self) -> bool:
        """Whether it is not over and nobody has taken note of it."""
        return self.is_active and self.acknowledged_at_wall_ms is None
