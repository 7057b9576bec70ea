"""Pure: a crash opens one alert, further crashes belong to it, and lasting health resolves it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ...spec.policies.alert_policy import AlertPolicy
from ..scenarios.history import Announced, EventPublished, Stored, SupervisorStarted
from ..scenarios.known_state import Facts
from .promise import EXACT_S, Deadlines, Promise

CRASHED = "crashed"
"""The kind of the alerts about deaths."""
WARNING, CRITICAL = 1, 2
SETTLE_S = AlertPolicy().settle_s

Key = tuple[str | None, str, str | None]
"""The worker, the kind, and the breaker or queue of an alert."""

_OPENS = {"worker_unkillable": "unkillable", "breaker_opened": "breaker", "store_degraded": "store"}
_RESOLVES = {"breaker_closed": "breaker", "store_recovered": "store"}
"""The kinds of alerts that these events open and resolve."""
_ENDS_CRASHES = ("worker_reset", "worker_stopped", "worker_died", "breaker_opened")
"""After which the alert of a crash may be resolved although the worker is not healthy."""


@dataclass(slots=True)
class _Episode:
    """An active alert."""

    severity: int
    occurrences: int
    opened_at: float = -1.0


class Alerts(Promise):
    """Alerts are episodes: opened once, counted, remembered, and resolved when the worker stays healthy."""

    rule: ClassVar[str] = "alerts are opened once and resolved"

    def __init__(self, facts: Facts, deadlines: Deadlines) -> None:
        super().__init__(facts, deadlines)
        self._active: dict[Key, _Episode] = {}
        self._stored: dict[Key, _Episode] = {}
        """The active ones in the store, which the next supervisor remembers."""
        self._resolved_at: dict[Key, float] = {}
        self._expected: dict[str, int] = {}
        """How many crashes belong to the alert of a worker, as far as they were published in this life."""
        self._healthy_at: dict[str, float] = {}
        self._was_healthy_s: dict[str, tuple[float, float]] = {}
        """When the last healthy time of a worker ended, and how long it was."""
        self._ended_at: dict[str | None, float] = {}
        """When something was published that ends alerts at once."""

    def hears(self) -> Mapping[type, Callable[[Any], Iterator[str] | None]]:
        """What is published, and what becomes of alerts."""
        return {
            SupervisorStarted: self._supervisor_started,
            Stored: self._kept,
            Announced: self._announced,
            EventPublished: self._published,
        }

    def _supervisor_started(self, _entry: SupervisorStarted) -> None:
        self._active = {key: _Episode(each.severity, each.occurrences) for key, each in self._stored.items()}
        self._expected = {
            worker: each.occurrences
            for (worker, kind, _), each in self._stored.items()
            if kind == CRASHED and worker is not None
        }
        self._healthy_at.clear()
        self._ended_at.clear()

    def _kept(self, entry: Stored) -> None:
        if entry.kind != "alert":
            return
        key = (entry.worker, entry.action or "", entry.value)
        if entry.restarts:
            self._stored[key] = _Episode(entry.streak, entry.restarts)
        else:
            self._stored.pop(key, None)

    # ── what becomes of alerts ───────────────────────────────────────────────────────────

    def _announced(self, entry: Announced) -> Iterator[str]:
        if entry.event != "alert_changed":
            return
        key = (entry.worker, entry.old or "", entry.about)
        name = f"alert {entry.old} of {entry.worker or entry.about or 'the system'}"
        known = self._active.get(key)
        if entry.new == "opened" and known is not None:
            yield f"a second {name} is opened while the first is active"
        elif entry.new != "opened" and known is None:
            yield f"{name} is {entry.new}, but is not active"
        elif known is not None and entry.severity < known.severity:
            yield f"{name} becomes less severe"
        if entry.new == "resolved":
            yield from self._too_early(entry, name)
            self._active.pop(key, None)
            self._resolved_at[key] = entry.at
            if entry.old == CRASHED:
                self._expected.pop(entry.worker or "", None)
        else:
            opened_at = entry.at if known is None else known.opened_at
            self._active[key] = _Episode(entry.severity, entry.occurrences, opened_at)

    def _too_early(self, entry: Announced, name: str) -> Iterator[str]:
        """Only lasting health resolves the alert of a crash, unless the worker is reset or stopped."""
        if entry.old != CRASHED or self.facts.an_actor_raised:
            return
        since = self._healthy_at.get(entry.worker or "")
        until, healthy_s = self._was_healthy_s.get(entry.worker or "", (-1.0, 0.0))
        if since is not None:
            until, healthy_s = entry.at, entry.at - since
        lasting = until >= entry.at - EXACT_S and healthy_s >= SETTLE_S - EXACT_S
        ended = max(self._ended_at.get(entry.worker, -1.0), self._ended_at.get(None, -1.0))
        if not lasting and ended < entry.at - EXACT_S:
            yield f"{name} is resolved before the worker was healthy for {SETTLE_S:g} s"

    # ── what opens and resolves them ─────────────────────────────────────────────────────

    def _published(self, entry: EventPublished) -> None:
        if entry.event in _ENDS_CRASHES:
            self._ended_at[entry.worker] = entry.at
        if entry.event in _OPENS:
            key = (entry.worker, _OPENS[entry.event], entry.about)
            self.by(key, entry.at, lambda: self._missing(key, entry))
        elif entry.event in _RESOLVES:
            key = (entry.worker, _RESOLVES[entry.event], entry.about)
            self.by(key, entry.at, lambda: self._lasting(key, entry))
        if entry.worker not in self.facts.workers:
            return
        assert entry.worker is not None
        crash = (entry.worker, CRASHED, None)
        if entry.event == "worker_died":
            self._died(entry, entry.worker)
        elif entry.event == "worker_failed":
            self.by((entry.worker, "failed"), entry.at, lambda: self._mild(crash, entry))
        elif entry.event == "worker_reset":
            self.by((entry.worker, "reset"), entry.at, lambda: self._lasting(crash, entry))
        if entry.event in ("status_changed", "worker_stopping", "worker_stopped"):
            since = self._healthy_at.pop(entry.worker, None)
            if since is not None:
                self._was_healthy_s[entry.worker] = (entry.at, entry.at - since)
            if entry.new == "healthy":
                self._healthy_at[entry.worker] = entry.at
                self.by((entry.worker, "resolved"), entry.at + SETTLE_S, lambda: self._unresolved(entry))

    def _died(self, entry: EventPublished, id_: str) -> None:
        worker = self.facts.workers[id_]
        decided = worker.decided.get(entry.generation)
        if worker.spec.breaker is not None or decided is None:
            return  # the alert of the breaker covers it
        is_asked_for = decided.action == "restart_uncounted" and decided.was_ready
        if (
            decided.action in ("restart", "restart_uncounted", "mark_failed", "notify_only")
            and not is_asked_for
        ):
            severity = CRITICAL if decided.action == "notify_only" else WARNING
            count = self._expected[id_] = self._expected.get(id_, 0) + 1
            self.by((id_, "opened"), entry.at, lambda: self._uncounted(entry, id_, count, severity))

    def _missing(self, key: Key, entry: EventPublished) -> str | None:
        if key in self._active or self._resolved_at.get(key, -1.0) >= entry.at:
            return None
        return f"no alert {key[1]} is opened for {entry.event} of {key[0] or key[2] or 'the system'}"

    def _lasting(self, key: Key, entry: EventPublished) -> str | None:
        found = self._active.get(key)
        if found is None or found.opened_at >= entry.at - EXACT_S:
            return None
        return f"the alert {key[1]} of {key[0] or key[2] or 'the system'} outlasts {entry.event}"

    def _mild(self, key: Key, entry: EventPublished) -> str | None:
        found = self._active.get(key)
        if found is not None and found.severity == CRITICAL:
            return None
        if self._resolved_at.get(key, -1.0) >= entry.at:
            return None
        return f"{entry.worker} is given up, and its alert is not critical"

    def _uncounted(self, entry: EventPublished, id_: str, count: int, severity: int) -> str | None:
        key = (id_, CRASHED, None)
        found = self._active.get(key)
        if self._resolved_at.get(key, -1.0) >= entry.at or self._expected.get(id_) != count:
            return None
        if found is None:
            return f"no alert is opened for the death of {id_} #{entry.generation}"
        if found.severity < severity or (
            count == 1 and found.severity > severity and not self._is_given_up(id_)
        ):
            return f"the alert for the death of {id_} #{entry.generation} has severity {found.severity}"
        if found.occurrences != count and not self.facts.an_actor_raised:
            return f"the alert of {id_} counts {found.occurrences} crashes, not {count}"
        return None

    def _is_given_up(self, id_: str) -> bool:
        return self.facts.workers[id_].failed_at is not None

    def _unresolved(self, entry: EventPublished) -> str | None:
        still = self._healthy_at.get(entry.worker or "") == entry.at
        if not still or (entry.worker, CRASHED, None) not in self._active:
            return None
        return f"the alert of {entry.worker} is not resolved after {SETTLE_S:g} healthy seconds"
