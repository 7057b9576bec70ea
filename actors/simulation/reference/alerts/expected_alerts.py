"""Pure: a crash opens one alert, further crashes belong to it, and lasting health resolves it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ....spec.policies.alert_policy import AlertPolicy
from ....spec.worker_spec import WorkerSpec
from ...scenarios.history import Announced, Decided, EventPublished, Stored, SupervisorStarted
from ...scenarios.known_state import Facts
from ..promise import EXACT_S, Deadlines, Promise

CRASHED = "crashed"
"""The kind of the alerts about deaths."""
WARNING, CRITICAL = 1, 2
SETTLE_S = AlertPolicy().settle_s
ESCALATE_S = AlertPolicy().escalate_after_s or 0.0

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
    is_escalated: bool = False


class ExpectedAlerts(Promise):
    """Alerts are episodes: opened once, counted, remembered, and resolved when the worker stays healthy."""

    rule: ClassVar[str] = "alerts are opened once and resolved"

    def __init__(self, facts: Facts, deadlines: Deadlines) -> None:
        super().__init__(facts, deadlines)
        self._active: dict[Key, _Episode] = {}
        self._stored: dict[Key, _Episode] = {}
        """The active ones in the store, which the next supervisor remembers."""
        self._began_at: dict[Key, float] = {}
        """When each was opened, also by a former supervisor."""
        self._resolved_at: dict[Key, float] = {}
        self._uncounted: dict[str, int] = {}
        """Crashes of a worker that were published and are not counted in its alert yet."""
        self._worst: dict[str, tuple[float, int]] = {}
        """When the last crash of a worker was published, and the worst severity of that moment."""
        self._healthy_at: dict[str, float] = {}
        """When it was published that a worker is healthy."""
        self._well_since: dict[str, float] = {}
        """Since when it really is, which an upgraded supervisor knows."""
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

    def _supervisor_started(self, entry: SupervisorStarted) -> None:
        was = self._active
        self._active = {key: _Episode(each.severity, each.occurrences) for key, each in self._stored.items()}
        for key in self._active.keys() & was.keys():
            self._active[key].is_escalated = was[key].is_escalated
            self._must_escalate(key, max(entry.at, self._began_at.get(key, entry.at) + ESCALATE_S))
        self._uncounted.clear()
        self._healthy_at.clear()
        self._well_since.clear()
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
            return
        if entry.old == CRASHED and entry.worker is not None:
            self._count(
                entry.worker, entry.at, (0 if known is None else known.occurrences) - entry.occurrences
            )
            at, worst = self._worst.get(entry.worker, (-1.0, WARNING))
            if entry.new == "opened" and entry.severity > worst and at >= entry.at - EXACT_S:
                yield f"{name} is critical, although the worker is restarted"
        opened_at = entry.at if known is None else known.opened_at
        is_escalated = entry.new == "escalated" or (known is not None and known.is_escalated)
        self._active[key] = _Episode(entry.severity, entry.occurrences, opened_at, is_escalated)
        if known is None:
            self._began_at[key] = entry.at
            self._must_escalate(key, entry.at + ESCALATE_S)

    def _must_escalate(self, key: Key, due: float) -> None:
        """No operator acknowledges alerts here: one that lasts is sent once more."""
        opened_at = self._active[key].opened_at

        def why() -> str | None:
            found = self._active.get(key)
            is_same = found is not None and found.opened_at == opened_at and not found.is_escalated
            if not is_same or self.facts.an_actor_raised or self.facts.clock_range != (0.0, 0.0):
                return None
            name = key[0] or key[2] or "the system"
            return f"the alert {key[1]} of {name} is not sent again after {ESCALATE_S:g} s"

        self.by((key, "escalated"), due, why)

    def _count(self, id_: str, at: float, crashes: int) -> None:
        """Crashes were published (1), or counted in an alert (-1); in one moment both have happened."""
        self._uncounted[id_] = self._uncounted.get(id_, 0) + crashes

        def why() -> str | None:
            uncounted = self._uncounted.pop(id_, 0)
            if not uncounted or self.facts.an_actor_raised:
                return None
            if uncounted > 0:
                return f"{id_} died, and its alert does not count that"
            return f"{id_} did not die, and its alert counts a crash"

        if self.facts.workers[id_].spec.breaker is None:  # else the alert of the breaker covers it
            self.by((id_, "counted"), at, why)

    def _too_early(self, entry: Announced, name: str) -> Iterator[str]:
        """Only lasting health resolves the alert of a crash, unless the worker is reset or stopped."""
        if entry.old != CRASHED or self.facts.an_actor_raised:
            return
        since = self._well_since.get(entry.worker or "")
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
            self._healthy_at.pop(entry.worker, None)
            since = self._well_since.pop(entry.worker, None)
            if since is not None:
                self._was_healthy_s[entry.worker] = (entry.at, entry.at - since)
            if entry.new == "healthy":
                self._healthy_at[entry.worker] = entry.at
                self._well_since[entry.worker] = entry.at if entry.since is None else entry.since
                self.by((entry.worker, "resolved"), entry.at + SETTLE_S, lambda: self._unresolved(entry))

    def _died(self, entry: EventPublished, id_: str) -> None:
        decided = self.facts.workers[id_].decided.get(entry.generation)
        severity = None if decided is None else severity_of(decided, self.facts.workers[id_].spec)
        if severity is None:
            return
        self._count(id_, entry.at, 1)
        at, worst = self._worst.get(id_, (-1.0, WARNING))
        self._worst[id_] = (entry.at, max(severity, worst) if at == entry.at else severity)
        if severity == CRITICAL:
            self.by((id_, "critical"), entry.at, lambda: self._mild((id_, CRASHED, None), entry))

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
        return f"{entry.worker} is not restarted, and its alert is not critical"

    def _unresolved(self, entry: EventPublished) -> str | None:
        still = self._healthy_at.get(entry.worker or "") == entry.at
        left = [kind for worker, kind, _ in self._active if worker == entry.worker and kind != "overdue"]
        if not still or not left:
            return None
        return f"the alert {left[0]} of {entry.worker} is not resolved after {SETTLE_S:g} healthy seconds"


def severity_of(decided: Decided, spec: WorkerSpec) -> int | None:
    """How severe the alert of this death is; None if it opens none."""
    ended_well = decided.cause == "exited" and decided.code in (0, *spec.restart.success_exit_codes)
    match decided.action:
        case "restart" | "mark_failed":
            return WARNING
        case "restart_uncounted":
            return None if decided.was_ready else WARNING  # its exit code asks for a restart
        case "notify_only":
            return CRITICAL
        case "none" if not ended_well and decided.cause != "supervisor_lost":
            return CRITICAL
        case _:
            return None
