"""The handlers of the routes about alerts.

The names of the structs are public: they are schemas in the OpenAPI document.
"""

from __future__ import annotations

import msgspec

from ....errors import RequestRefusedError
from ....facts.alert import Alert, AlertKind
from ...serving.json_values import CommandResult
from ..request_bodies import Text
from ..route import Request


class Alarm(msgspec.Struct, frozen=True, kw_only=True):
    """One alert, from its first occurrence until it is resolved."""

    id: int
    kind: AlertKind
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
    """The queue with toxic jobs, if the alert is about one."""
    breaker: str | None
    """The open breaker, if the alert is about one."""
    work_item: int | str | None
    assignee_cleared: bool | None
    restart_available: bool
    escalated: bool
    acknowledged_at_wall_ms: int | None
    acknowledged_by: str | None
    resolved_at_wall_ms: int | None


class AlarmsDocument(msgspec.Struct, frozen=True):
    """The active alerts and the latest resolved ones, most severe first."""

    alerts: list[Alarm]


class NotedBy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who acknowledges the alert."""

    by: Text = "an operator"


def alerts(request: Request) -> object:
    return AlarmsDocument([_view(alert) for alert in request.operator.alerts()])


def acknowledge(request: Request) -> object:
    if not request.target.isdecimal():
        raise RequestRefusedError(f"{request.target[:20]!r} is not an alert number")
    request.operator.acknowledge(int(request.target), request.arguments.by or "an operator")
    return CommandResult()


def _view(alert: Alert) -> Alarm:
    names = set(Alarm.__struct_fields__) - {"severity"}
    return Alarm(severity=alert.severity.word, **{name: getattr(alert, name) for name in names})
