"""A store for what need not be remembered: an executor's workers go with the program that made them."""

from __future__ import annotations

from collections.abc import Sequence

from ..deaths.crash_bundle import Bundle
from ..errors import RequestRefusedError
from ..facts.alert import Alert
from ..facts.audit_entry import AuditEntry
from ..facts.jobs import JobSettled
from ..facts.records import (
    DeathRecord,
    EventPage,
    EventRecord,
    Lives,
    Record,
    Remembered,
    UsageNoted,
)
from ..ports import Jobs
from ..spec.retention_policy import Retention


class NullStore:
    """Keeps nothing."""

    def load(self) -> Remembered:
        """Nothing is known of the past."""
        return Remembered()

    def commit(self, records: Sequence[Record]) -> tuple[JobSettled, ...]:
        """All is well, and forgotten."""
        return ()

    @property
    def jobs(self) -> Jobs:
        """There are none.

        Raises:
            RequestRefusedError: always.
        """
        raise RequestRefusedError("an executor's own store has no queues: hand in another one")

    @property
    def address(self) -> str | None:
        """Nowhere."""
        return None

    def deaths(
        self, component_id: str | None = None, *, signal: int | None = None, limit: int = 100
    ) -> tuple[DeathRecord, ...]:
        """None that is known."""
        return ()

    def bundles(
        self, component_id: str, *, generation: int | None = None, limit: int = 100
    ) -> tuple[Bundle, ...]:
        """None was kept."""
        return ()

    def audit(self, limit: int = 100) -> tuple[AuditEntry, ...]:
        """None that is known."""
        return ()

    def alerts(self) -> tuple[Alert, ...]:
        """None that is known."""
        return ()

    def events(self, after_id: int = 0, limit: int = 100) -> EventPage:
        """None that is kept."""
        return EventPage((), 0, 0)

    def events_of(
        self, component_id: str | None, *, since_wall_ms: int = 0, limit: int = 100
    ) -> tuple[EventRecord, ...]:
        """None that is kept."""
        return ()

    def lives(self, component_id: str) -> Lives:
        """None that is known."""
        return Lives()

    def usages(
        self, component_id: str, *, since_wall_ms: int = 0, limit: int = 100
    ) -> tuple[UsageNoted, ...]:
        """None that is kept."""
        return ()

    def prune(self, retention: Retention, now_wall_ms: int) -> bool:
        """There is nothing."""
        return False

    def close(self) -> None:
        """Nothing to let go of."""
