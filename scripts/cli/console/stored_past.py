"""The past of a system that is not running, read from its store."""

from __future__ import annotations

from typing import Any

from rekindle.actors.deaths.crash_bundle import Bundle
from rekindle.actors.errors import UnknownWorkerError
from rekindle.actors.facts.alert import Alert
from rekindle.actors.facts.audit_entry import AuditEntry
from rekindle.actors.facts.generations import EVERY_OTHER
from rekindle.actors.facts.records import DeathRecord, EventPage, Remembered, RememberedWorker
from rekindle.actors.facts.runs import Run
from rekindle.actors.ports import Store
from rekindle.actors.rules.alerts.alert_rules import ordered
from rekindle.actors.supervision.after_death.lost_lives import lost_death
from rekindle.actors.system.stored_history import StoredHistory, mentions_worker
from rekindle.actors.views.timeline import Timeline
from rekindle.actors.views.worker_history import WorkerHistory


class StoredPast:
    """Answers what the routes about the past ask of a `System`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._history = StoredHistory(store)

    def known(self) -> tuple[str, ...]:
        """The workers that the store knows."""
        stored = self._store.load()
        return tuple(sorted({*stored.workers, *stored.generations} - {EVERY_OTHER}))

    def workers(self) -> list[dict[str, Any]]:
        """The last known state of each worker, ordered by id."""
        stored = self._store.load()
        return [self._last_known(id_, stored) for id_ in self.known()]

    def _last_known(self, component_id: str, stored: Remembered) -> dict[str, Any]:
        worker = stored.workers.get(component_id, RememberedWorker())
        lost = next((life for life in stored.lost if life.component_id == component_id), None)
        if lost is not None:  # the next supervisor records it
            last: DeathRecord | None = lost_death(lost, worker)[0]
        else:
            last = next(iter(self.deaths(component_id, limit=1)), None)
        ended = "stopped" if lost is None else "lost"
        return {
            "id": component_id,
            "component_id": component_id,
            "shown": ended if worker.failed_at_wall_ms is None else "failed",
            "generation": max(worker.last_generation, stored.started.get(component_id, 0)),
            "restart_count": worker.restart_count,
            "streak_count": worker.streak_count,
            "failure_reason": worker.failure_reason,
            "last_death": None if last is None else _death(last),
        }

    def check(self, component_id: str) -> None:
        """Check that the store knows a worker.

        Raises:
            UnknownWorkerError: it does not.
        """
        known = self.known()
        if component_id not in known:
            raise UnknownWorkerError(component_id, known)

    def alerts(self) -> tuple[Alert, ...]:
        """The alerts that were open at the end and the latest closed ones, the most severe first."""
        return tuple(ordered(self._store.alerts()))

    def deaths(self, component_id: str | None = None, limit: int = 100) -> tuple[DeathRecord, ...]:
        """The latest deaths, newest first."""
        return self._history.deaths(component_id, limit)

    def history(self, component_id: str, limit: int = 100) -> WorkerHistory:
        """The latest deaths of one worker, newest first."""
        return WorkerHistory(id=component_id, deaths=self.deaths(component_id, limit))

    def runs(self, component_id: str, limit: int = 100) -> tuple[Run, ...]:
        """The latest runs of a scheduled worker, newest first."""
        return self._history.runs(component_id, limit)

    def bundles(self, component_id: str, limit: int = 100) -> tuple[Bundle, ...]:
        """The evidence of a worker's latest deaths, newest first."""
        return self._history.bundles(component_id, limit)

    def bundle(self, component_id: str, generation: int) -> Bundle:
        """The evidence of one death."""
        return self._history.bundle(component_id, generation)

    def timeline(self, component_id: str, since_wall_ms: int = 0, limit: int = 100) -> Timeline:
        """What happened to a worker, newest first.

        Raises:
            UnknownWorkerError: the store does not know the worker.
        """
        found = self._history.timeline(component_id, since_wall_ms, limit)
        if not mentions_worker(found):
            raise UnknownWorkerError(component_id, self.known())
        return found

    def audited(self, limit: int = 100) -> tuple[AuditEntry, ...]:
        """The latest orders of operators, newest first."""
        return self._history.audited(limit)

    def event_log(self, after_id: int = 0, limit: int = 100, /) -> EventPage:
        """The persisted events after an event id, oldest first."""
        return self._history.event_log(after_id, limit)

    def close(self) -> None:
        """Close the store."""
        self._store.close()


def _death(record: DeathRecord) -> dict[str, Any]:
    return {
        "generation": record.generation,
        "died_at_wall_ms": record.died_at_wall_ms,
        "exit_code": record.exit_code,
        "signal": record.signal,
        "cause": record.cause.value,
        "reason": record.reason,
    }
