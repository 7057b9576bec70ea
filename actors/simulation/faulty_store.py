"""A store between the persistence actor and the real store: fails on demand and reports each commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from ..errors import StoreUnavailableError
from ..facts.records import DeathRecord, MetaSet, Record, RestartReset, RestartsCounted, StreakCleared
from ..ports import Store
from .scenarios.history import Stored
from .scenarios.moves import DatabaseState

_WORDS = {
    DatabaseState.LOCKED: "database is locked",
    DatabaseState.GONE: "unable to open database file",
    DatabaseState.FULL: "database or disk is full",
}


_SAID = frozenset({DeathRecord, MetaSet, RestartReset, RestartsCounted, StreakCleared})


class FaultyStore:
    """Keeps what it is given in another store, unless something is wrong."""

    def __init__(
        self,
        store: Store,
        *,
        now: Callable[[], float],
        note: Callable[[Stored], None],
        kept: Callable[[str], None] = lambda worker: None,
    ) -> None:
        """Stand before a store.

        Args:
            store: where everything is kept.
            now: the time of the scenario.
            note: is told what was kept.
            kept: is told whose death was just kept, before anybody else knows.
        """
        self.state = DatabaseState.BACK
        self._store = store
        self._now = now
        self._note = note
        self._kept = kept

    def __getattr__(self, name: str) -> Any:
        """Whatever else a store can do, the real one does."""
        return getattr(self._store, name)

    def as_store(self) -> Store:
        """The same, to whoever asks for a store."""
        return cast("Store", self)

    def commit(self, records: Sequence[Record]) -> Any:
        """Keep all of them, or raise what is wrong and keep none."""
        if self.state in _WORDS:
            raise StoreUnavailableError(_WORDS[self.state])
        answer = self._store.commit(records)
        said = [record for record in records if type(record) in _SAID]
        for record in said:
            if (entry := stored(self._now(), record)) is not None:
                self._note(entry)
        for record in said:
            if isinstance(record, DeathRecord):
                self._kept(record.component_id)
        return answer


def stored(at: float, record: Record) -> Stored | None:
    """What a record says to a history; the mirror, the audit and events say nothing."""
    if type(record) not in _SAID:
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
            )
        case StreakCleared(component_id=worker, at_wall_ms=wall_ms):
            return Stored(at, "streak", worker, wall_ms=wall_ms)
        case RestartReset(component_id=worker, at_wall_ms=wall_ms):
            return Stored(at, "reset", worker, wall_ms=wall_ms)
        case RestartsCounted(component_id=worker, at_wall_ms=wall_ms, restarts=restarts, streak=streak):
            return Stored(at, "restarts", worker, wall_ms=wall_ms, restarts=restarts, streak=streak)
        case MetaSet(key=key, value=value):
            return Stored(at, "meta", key, value=value)
        case _:
            return None
