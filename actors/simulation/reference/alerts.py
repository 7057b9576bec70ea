"""Pure: a crash opens one alert, further crashes belong to it, and lasting health resolves it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from ...spec.policies.alert_policy import AlertPolicy
from ..scenarios.history import Announced, EventPublished, SupervisorStarted
from ..scenarios.known_state import Facts
from .promise import Deadlines, Promise

CRASHED = "crashed"
"""The kind of the alerts about deaths."""
SETTLE_S = AlertPolicy().settle_s


class Alerts(Promise):
    """Alerts are episodes: opened once, and resolved when the worker stays healthy."""

    rule: ClassVar[str] = "alerts are opened once and resolved"

    def __init__(self, facts: Facts, deadlines: Deadlines) -> None:
        super().__init__(facts, deadlines)
        self._active: set[tuple[str, str]] = set()
        """Worker and kind of the alerts that this supervisor is known to hold."""
        self._changed_at: dict[str, float] = {}
        """When something last became of an alert of this worker."""
        self._healthy_at: dict[str, float] = {}

    def hears(self) -> Mapping[type, Callable[[Any], Iterator[str] | None]]:
        """What is published, and what becomes of alerts."""
        return {
            SupervisorStarted: self._supervisor_started,
            Announced: self._announced,
            EventPublished: self._published,
        }

    def _supervisor_started(self, _entry: SupervisorStarted) -> None:
        self._active.clear()
        self._healthy_at.clear()

    def _announced(self, entry: Announced) -> Iterator[str]:
        if entry.event != "alert_changed" or entry.worker is None:
            return
        self._changed_at[entry.worker] = entry.at
        key = (entry.worker, entry.old or "")
        if entry.new == "resolved":
            self._active.discard(key)
            return
        if entry.new == "opened" and key in self._active:
            yield f"a second alert is opened for {entry.worker} while the first is active"
        self._active.add(key)

    def _published(self, entry: EventPublished) -> None:
        worker = self.facts.workers.get(entry.worker or "")
        if worker is None or entry.worker is None:
            return
        if entry.event == "worker_died" and worker.spec.breaker is None:
            decided = worker.decided.get(entry.generation)
            if decided is not None and decided.action in ("restart", "mark_failed"):
                self.by((entry.worker, "opened"), entry.at, lambda: self._unopened(entry))
        if entry.event in ("status_changed", "worker_stopping", "worker_stopped"):
            self._healthy_at.pop(entry.worker, None)
            if entry.new == "healthy":
                self._healthy_at[entry.worker] = entry.at
                self.by((entry.worker, "resolved"), entry.at + SETTLE_S, lambda: self._unresolved(entry))

    def _unopened(self, entry: EventPublished) -> str | None:
        if self._changed_at.get(entry.worker or "", -1.0) >= entry.at:
            return None
        return f"no alert is opened for the death of {entry.worker} #{entry.generation}"

    def _unresolved(self, entry: EventPublished) -> str | None:
        still = self._healthy_at.get(entry.worker or "") == entry.at
        if not still or (entry.worker, CRASHED) not in self._active:
            return None
        return f"the alert of {entry.worker} is not resolved after {SETTLE_S:g} healthy seconds"
