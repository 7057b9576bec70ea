"""Alerts as rows: fields that queries use are columns, the rest is JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, delete, select

from rekindle.actors.facts.alert import Alert, AlertKind, Severity
from rekindle.actors.rules.alerts.alert_book import MOST_RESOLVED

from ..schema.tables import ALERT
from .encoding import storable

_BODY = (
    "message",
    "reason",
    "last_at_wall_ms",
    "occurrences",
    "recent_count",
    "queue",
    "breaker",
    "work_item",
    "assignee_cleared",
    "restart_available",
    "escalated",
    "acknowledged_at_wall_ms",
    "acknowledged_by",
)


def alert_values(alert: Alert) -> dict[str, Any]:
    """The columns of an alert's row."""
    body = {name: _plain(getattr(alert, name)) for name in _BODY}
    return {
        "id": alert.id,
        "component_id": alert.component_id,
        "kind": alert.kind.value,
        "severity": alert.severity.word,
        "opened_at_wall_ms": alert.opened_at_wall_ms,
        "resolved_at_wall_ms": alert.resolved_at_wall_ms,
        "body": msgspec.json.encode(body).decode(),
    }


def alert_of(row: Any) -> Alert | None:
    """The alert of a row; None if it was written by hand, or by a newer version."""
    try:
        return Alert(
            id=row.id,
            kind=AlertKind(row.kind),
            component_id=row.component_id,
            severity=Severity[row.severity.upper()],
            opened_at_wall_ms=row.opened_at_wall_ms,
            resolved_at_wall_ms=row.resolved_at_wall_ms,
            **msgspec.json.decode(row.body),
        )
    except (ValueError, KeyError, TypeError):
        return None


def load_alerts(connection: Connection) -> tuple[Alert, ...]:
    """All active alerts and the latest resolved ones, oldest first."""
    is_open = ALERT.c.resolved_at_wall_ms.is_(None)
    active = connection.execute(select(ALERT).where(is_open))
    over = connection.execute(select(ALERT).where(~is_open).order_by(ALERT.c.id.desc()).limit(MOST_RESOLVED))
    found = [alert for row in (*active, *over) if (alert := alert_of(row)) is not None]
    return tuple(sorted(found, key=lambda alert: alert.id))


def forget_alerts(connection: Connection, ids: Sequence[int]) -> None:
    """Delete these rows."""
    connection.execute(delete(ALERT).where(ALERT.c.id.in_(ids)))


def _plain(value: Any) -> Any:
    """Replace lone surrogates (as in a path that is not UTF-8): they would make the commit fail."""
    return storable(value) if isinstance(value, str) else value
