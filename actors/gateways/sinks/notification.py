"""Pure: an alert as it is sent to others, which of them are sent, and how many a minute."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from ...facts.alert import TOLD, Alert, Happening, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """What one message is about."""

    happening: Happening
    alert: Alert
    withheld: int = 0
    """Messages before this one that were not sent, because there were too many."""

    def fields(self) -> Mapping[str, str]:
        """What the placeholders of a command stand for."""
        alert = self.alert
        return {
            "id": str(alert.id),
            "happening": self.happening.value,
            "severity": alert.severity.word,
            "kind": alert.kind.value,
            "component_id": alert.component_id or "",
            "message": alert.message,
            "reason": alert.reason,
            "occurrences": str(alert.occurrences),
        }

    def document(self) -> bytes:
        """The message as JSON; the same for every sink."""
        alert = self.alert
        return json.dumps(
            {
                **self.fields(),
                "id": alert.id,
                "component_id": alert.component_id,
                "occurrences": alert.occurrences,
                "recent_count": alert.recent_count,
                "queue": alert.queue,
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
    """Which notices a sink is sent."""

    happenings: tuple[Happening, ...] = TOLD
    least: Severity = Severity.WARNING
    per_minute: int = 10

    def wants(self, notice: Notification) -> bool:
        """Whether this notice is meant for the sink."""
        return notice.happening in self.happenings and notice.alert.severity >= self.least


@dataclass(frozen=True, slots=True)
class RateLimit:
    """How many more may be sent this minute; what was held back is told with the next one."""

    sent: tuple[float, ...] = ()
    withheld: int = 0

    def admit(self, now: float, per_minute: int) -> tuple[RateLimit, bool]:
        """The allowance afterwards, and whether one more may be sent now."""
        recent = tuple(at for at in self.sent if at > now - 60.0)
        if len(recent) >= per_minute:
            return RateLimit(recent, self.withheld + 1), False
        return RateLimit((*recent, now), 0), True
