"""A store in front of the real one: it fails on demand, and reports the records that were persisted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from ..errors import StoreUnavailableError
from ..facts.jobs import JobSettled
from ..facts.records import (
    AlertKept,
    ClaimsReleased,
    DeathRecord,
    EventRecord,
    FormerClaimsReleased,
    MetaSet,
    Record,
    RestartReset,
    RestartsCounted,
    StreakCleared,
)
from ..ports import Store
from .scenarios.history import EventsStored, Stored
from .scenarios.jobs.job_entries import JobReleased
from .scenarios.moves import DatabaseState

_WORDS = {
    DatabaseState.LOCKED: "database is locked",
    DatabaseState.GONE: "unable to open database file",
    DatabaseState.FULL: "database or disk is full",
}


_NOTED = frozenset({AlertKept, DeathRecord, MetaSet, RestartReset, RestartsCounted, StreakCleared})


class FaultyStore:
    """Persists records in another store, unless the scenario has the database fail."""

    def __init__(
        self,
        store: Store,
        *,
        now: Callable[[], float],
        note: Callable[[Stored | EventsStored | JobReleased], None],
        committed: Callable[[str], None] = lambda worker: None,
        released: Callable[[], None] = lambda: None,
    ) -> None:
        """Wrap a store.

        Args:
            store: where everything is persisted.
            now: returns the time of the scenario.
            note: called with every persisted record that the history needs.
            committed: called with the worker whose death was just persisted, before any actor is notified.
            released: called when claims on jobs were released.
        """
        self.state = DatabaseState.BACK
        self._store = store
        self._now = now
        self._note = note
        self._committed = committed
        self._released = released

    def __getattr__(self, name: str) -> Any:
        """All other methods are those of the real store."""
        return getattr(self._store, name)

    def as_store(self) -> Store:
        """This object, typed as a store."""
        return cast("Store", self)

    def commit(self, records: Sequence[Record]) -> Any:
        """Persist all records, or raise and persist none."""
        if self.state in _WORDS:
            raise StoreUnavailableError(_WORDS[self.state])
        answer = self._store.commit(records)
        numbers = tuple(record.id for record in records if type(record) is EventRecord)
        if numbers:
            self._note(EventsStored(self._now(), numbers))
        noted = [record for record in records if type(record) in _NOTED]
        for record in noted:
            if (entry := stored(self._now(), record)) is not None:
                self._note(entry)
        for job in answer:
            self._note(released(self._now(), job, _ended_ms(records, job)))
        if answer:
            self._released()
        for record in noted:
            if isinstance(record, DeathRecord):
                self._committed(record.component_id)
        return answer


def _ended_ms(records: Sequence[Record], job: JobSettled) -> int:
    """When the supervisor learned of the end of a job's worker."""
    for record in records:
        if isinstance(record, FormerClaimsReleased) or (
            isinstance(record, ClaimsReleased)
            and (record.component_id, record.generation) == (job.component_id, job.generation)
        ):
            return record.at_wall_ms
    return 0


def released(at: float, job: JobSettled, wall_ms: int) -> JobReleased:
    """The entry of a job whose claim was released."""
    return JobReleased(
        at,
        job.component_id,
        job.generation,
        job.job_id,
        job.state.value,
        job.crash_count,
        job.counted,
        job.timed_out,
        wall_ms,
    )


def stored(at: float, record: Record) -> Stored | None:
    """The entry of a record; None for records that a history does not need (states, audit, events)."""
    if type(record) not in _NOTED:
        return None
    match record:
        case DeathRecord():
            return Stored(
                at,
                "death",
                record.component_id,
                record.generation,
                record.action,
                record.streak_cleared,
                record.died_at_wall_ms,
                delay_ms=record.delay_ms,
            )
        case StreakCleared(component_id=worker, at_wall_ms=wall_ms):
            return Stored(at, "streak", worker, wall_ms=wall_ms)
        case RestartReset(component_id=worker, at_wall_ms=wall_ms):
            return Stored(at, "reset", worker, wall_ms=wall_ms)
        case RestartsCounted(component_id=worker, at_wall_ms=wall_ms, restarts=restarts, streak=streak):
            return Stored(at, "restarts", worker, wall_ms=wall_ms, restarts=restarts, streak=streak)
        case AlertKept(alert=alert):
            return Stored(
                at,
                "alert",
                alert.component_id,
                alert.id,
                alert.kind.value,
                value=alert.breaker or alert.queue,
                restarts=alert.occurrences if alert.is_active else 0,
                streak=int(alert.severity),
            )
        case MetaSet(key=key, value=value):
            return Stored(at, "meta", key, value=value)
        case _:
            return None
