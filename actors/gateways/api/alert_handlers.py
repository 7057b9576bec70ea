"""What the routes about alerts answer."""

from __future__ import annotations

import msgspec

from ...errors import RequestRefusedError
from ...facts.alert import Alert, Kind
from ..serving.json_values import Outcome
from .request_bodies import Text
from .route import Asked


class Alarm(msgspec.Struct, frozen=True, kw_only=True):
    """One episode of something being wrong."""

    id: int
    kind: Kind
    component_id: str | None
    severity: str
    """critical, warning or info."""
    message: str
    reason: str
    opened_at_wall_ms: int
    last_at_wall_ms: int
    occurrences: int
    recent_count: int
    queue: str | None
    """The queue whose jobs are toxic, if it is about one."""
    work_item: int | str | None
    assignee_cleared: bool | None
    restart_available: bool
    escalated: bool
    acknowledged_at_wall_ms: int | None
    acknowledged_by: str | None
    resolved_at_wall_ms: int | None


class Alarms(msgspec.Struct, frozen=True):
    """The alerts that are not over, and the latest of those that are; the worst first."""

    alerts: list[Alarm]


class NotedBy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who takes note of it."""

    by: Text = "an operator"


def alerts(asked: Asked) -> object:
    return Alarms([_alarm(alert) for alert in asked.operator.alerts()])


def acknowledge(asked: Asked) -> object:
    if not asked.target.isdecimal():
        raise RequestRefusedError(f"there is no alert {asked.target[:20]!r}: alerts have numbers")
    asked.operator.acknowledge(int(asked.target), asked.arguments.by or "an operator")
    return Outcome()


def _alarm(alert: Alert) -> Alarm:
    names = set(Alarm.__struct_fields__) - {"severity"}
    return Alarm(severity=alert.severity.word, **{name: getattr(alert, name) for name in names})
