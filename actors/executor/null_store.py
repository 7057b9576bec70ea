"""A store that persists nothing: an executor's workers end with the program that created them."""

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
from ..facts.runs import Run
from ..ports import Jobs
from ..spec.policies.retention_policy import Retention


class NullStore:
    """Persists nothing."""

    def load(self) -> Remembered:
        """Empty."""
        return Remembered()

    def commit(self, records: Sequence[Record]) -> tuple[JobSettled, ...]:
        """Discard the records."""
        return ()

    @property
    def jobs(self) -> Jobs:
        """Not supported.

        Raises:
            RequestRefusedError: always.
        """
        raise RequestRefusedError("an executor's default store has no queues: pass another store")

    @property
    def address(self) -> str | None:
        """None: there is no database."""
        return None

    def deaths(
        self, component_id: str | None = None, *, signal: int | None = None, limit: int = 100
    ) -> tuple[DeathRecord, ...]:
        """None."""
        return ()

    def bundles(
        self, component_id: str, *, generation: int | None = None, limit: int = 100
    ) -> tuple[Bundle, ...]:
        """None."""
        return ()

    def audit(self, limit: int = 100) -> tuple[AuditEntry, ...]:
        """None."""
        return ()

    def alerts(self) -> tuple[Alert, ...]:
        """None."""
        return ()

    def events(self, after_id: int = 0, limit: int = 100) -> EventPage:
        """An empty page."""
        return EventPage((), 0, 0)

    def events_of(
        self, component_id: str | None, *, since_wall_ms: int = 0, limit: int = 100
    ) -> tuple[EventRecord, ...]:
        """None."""
        return ()

    def lives(self, component_id: str) -> Lives:
        """None."""
        return Lives()

    def usages(
        self, component_id: str, *, since_wall_ms: int = 0, limit: int = 100
    ) -> tuple[UsageNoted, ...]:
        """None."""
        return ()

    def runs(self, component_id: str, *, limit: int = 100) -> tuple[Run, ...]:
        """None."""
        return ()

    def prune(self, retention: Retention, now_wall_ms: int) -> bool:
        """Nothing to delete."""
        return False

    def keep_aside(self, records: Sequence[Record], run: str) -> str | None:
        """Keep nothing."""
        return None

    def keep_mark(self, up_to: int) -> bool:
        """Keep nothing."""
        return False

    def take_back(self) -> int:
        """There is nothing to take back."""
        return 0

    def close(self) -> None:
        """Nothing to close."""
