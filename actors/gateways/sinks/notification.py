"""Pure: an alert as it is sent, the filter of a sink, and its rate limit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from ...facts.alert import TOLD, Alert, Happening, Severity
from ...views.redaction import masked_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """One message about an alert."""

    happening: Happening
    alert: Alert
    withheld: int = 0
    """Messages before this one that the rate limit withheld."""

    def fields(self) -> Mapping[str, str]:
        """The values of the placeholders of a command."""
        alert = self.alert
        return {
            "id": str(alert.id),
            "happening": self.happening.value,
            "severity": alert.severity.word,
            "kind": alert.kind.value,
            "component_id": alert.component_id or "",
            # They may quote the worker's output.
            "message": masked_text(alert.message),
            "reason": masked_text(alert.reason),
            "occurrences": str(alert.occurrences),
        }

    def document(self) -> bytes:
        """The message as JSON, for every sink the same."""
        alert = self.alert
        return json.dumps(
            {
                **self.fields(),
                "id": alert.id,
                "component_id": alert.component_id,
                "occurrences": alert.occurrences,
                "recent_count": alert.recent_count,
                "queue": alert.queue,
                "breaker": alert.breaker,
                "work_item": alert.work_item,
                "restart_available": alert.restart_available,
                "opened_at_wall_ms": alert.opened_at_wall_ms,
                "last_at_wall_ms": alert.last_at_wall_ms,
                "resolved_at_wall_ms": alert.resolved_at_wall_ms,
                "withheld": self.withheld,
            }
        ).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which notifications a sink receives."""

    happenings: tuple[Happening, ...] = TOLD
    least: Severity = Severity.WARNING
    per_minute: int = 10

    def wants(self, notification: Notification) -> bool:
        """Whether the sink receives this notification."""
        return notification.happening in self.happenings and notification.alert.severity >= self.least


@dataclass(frozen=True, slots=True)
class SinkRateLimit:
    """What was sent in the last minute; the next message reports how many were withheld."""

    sent: tuple[float, ...] = ()
    withheld: int = 0

    def admit(self, now: float, per_minute: int) -> tuple[SinkRateLimit, bool]:
        """The limit afterwards, and whether one more message may be sent now."""
        recent = tuple(at for at in self.sent if at > now - 60.0)
        if len(recent) >= per_minute:
            return SinkRateLimit(recent, self.withheld + 1), False
        return SinkRateLimit((*recent, now), 0), True
