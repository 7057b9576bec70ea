"""Pure: alerts about workers that run by the clock, that are held back, paused, stopped or done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from ...scenarios.history import Announced, EventPublished, Stored, SupervisorStarted
from ...scenarios.known_state import Facts
from ..promise import EXACT_S, Deadlines, Promise
from .expected_alerts import CRASHED, Key, severity_of

UNKILLABLE, BREAKER, OVERDUE = "unkillable", "breaker", "overdue"
"""The kinds of the alerts about processes that survive SIGKILL, about breakers, and about workers that do not
succeed by the clock."""
EVERYTHING = ""
_NEW_BEGINNINGS = ("run_succeeded", "worker_reset")
"""After which a worker is not overdue."""


class AlertEnds(Promise):
    """An alert lasts as long as what it tells of, and there is none for what another one covers."""

    rule: ClassVar[str] = "alerts end with what they tell of"

    def __init__(self, facts: Facts, deadlines: Deadlines) -> None:
        super().__init__(facts, deadlines)
        self._active: dict[Key, tuple[float, int]] = {}
        """When each active alert was opened, and how often it was counted."""
        self._stored: dict[Key, int] = {}
        self._resolved_at: dict[Key, float] = {}
        self._crashed_at: dict[str | None, float] = {}
        """When the last end of a worker was published that is an alert."""
        self._ended_at: dict[str | None, float] = {}
        """When something was published that may end the alert of a crash."""
        self._began_anew_at: dict[str | None, float] = {}
        self._closed_at: dict[str | None, float] = {}
        """When it was published that a breaker is closed."""
        self._stops_at: dict[str | None, float] = {}
        """When the last end of a worker was published that was stopped in a pause."""
        self._paused: set[str] = set()
        """As it is published; the empty id stands for everything."""

    def hears(self) -> Mapping[type, Callable[[Any], Iterator[str] | None]]:
        """What is published, and what becomes of alerts."""
        return {
            SupervisorStarted: self._supervisor_started,
            Stored: self._kept,
            Announced: self._announced,
            EventPublished: self._published,
        }

    def _kept(self, entry: Stored) -> None:
        key = (entry.worker, entry.action or "", entry.value)
        if entry.kind == "alert" and entry.restarts:
            self._stored[key] = entry.restarts
        elif entry.kind == "alert":
            self._stored.pop(key, None)

    def _supervisor_started(self, entry: SupervisorStarted) -> None:
        """What was wrong with the former supervisor is not wrong with this one."""
        self._active = {key: (-1.0, counted) for key, counted in self._stored.items()}
        self._paused.clear()
        for worker, kind, name in self._active:
            if worker is None and name is None:
                self._must_end((worker, kind, name), entry.at, "its supervisor")
            elif kind == BREAKER and name not in self.facts.stored_breakers:
                self._must_end((worker, kind, name), entry.at, "its breaker")

    def _must_end(self, key: Key, at: float, what: str) -> None:
        def why() -> str | None:
            known = self._active.get(key)
            if known is None or known[0] >= at - EXACT_S or self.facts.an_actor_raised:
                return None
            return f"the alert {key[1]} of {key[0] or 'the system'} outlasts {what}"

        self.by(("ends", *key), at, why)

    def _must_all_end(self, id_: str | None, at: float, what: str, *lasting: str) -> None:
        """All alerts of a worker end, but for these kinds."""
        for key in [each for each in self._active if each[0] == id_ and each[1] not in lasting]:
            self._must_end(key, at, what)

    # ── what becomes of alerts ───────────────────────────────────────────────────────────

    def _announced(self, entry: Announced) -> Iterator[str]:
        if entry.event != "alert_changed":
            return
        key = (entry.worker, entry.old or "", entry.about)
        if entry.new == "resolved":
            self._active.pop(key, None)
            self._resolved_at[key] = entry.at
            yield from self._may_end(entry)
            return
        opened_at, counted = self._active.get(key, (entry.at, 0))
        self._active[key] = (opened_at, entry.occurrences)
        if entry.old == CRASHED and entry.occurrences > counted:
            self.by((key, "counted"), entry.at, lambda: self._uncalled_for(entry))

    def _may_end(self, entry: Announced) -> Iterator[str]:
        """A pause ends no alert of a crash, and only a success, or a reset, one that a worker is overdue."""
        if entry.old == BREAKER:
            is_closed = self._closed_at.get(entry.about, -1.0) >= entry.at - EXACT_S
            if not is_closed and entry.about in self.facts.open_breakers and not self.facts.an_actor_raised:
                yield f"the alert of breaker {entry.about} ends, and it is open"
        elif entry.old == UNKILLABLE and entry.worker in self.facts.workers:
            is_reset = self._began_anew_at.get(entry.worker, -1.0) >= entry.at - EXACT_S
            if self.facts.workers[entry.worker].survives and not is_reset and not self.facts.an_actor_raised:
                yield f"the alert that {entry.worker} survives SIGKILL ends, and it does still"
        elif entry.old == OVERDUE:
            self.by((entry.worker, "overdue ends"), entry.at, lambda: self._too_early(entry))
        elif entry.old == CRASHED and entry.worker in self.facts.workers:
            is_at_once = self._stops_at.get(entry.worker, -1.0) >= entry.at - EXACT_S
            is_due = self._ended_at.get(entry.worker, -1.0) >= entry.at - EXACT_S
            is_due |= self._ended_at.get(None, -1.0) >= entry.at - EXACT_S
            if is_at_once and not is_due and not self.facts.an_actor_raised:
                yield f"the alert of {entry.worker} ends when it is stopped for a pause"

    def _too_early(self, entry: Announced) -> str | None:
        if self._began_anew_at.get(entry.worker, -1.0) >= entry.at - EXACT_S or self.facts.an_actor_raised:
            return None
        return f"the alert that {entry.worker} is overdue ends, and it has not succeeded"

    def _uncalled_for(self, entry: Announced) -> str | None:
        if self._crashed_at.get(entry.worker, -1.0) >= entry.at - EXACT_S or self.facts.an_actor_raised:
            return None
        return f"an alert counts a crash of {entry.worker}, which was held back or asked for a restart"

    # ── what opens and ends them ─────────────────────────────────────────────────────────

    def _published(self, entry: EventPublished) -> None:
        id_ = entry.worker
        match entry.event:
            case "pause_began":
                self._paused.add(id_ or EVERYTHING)
            case "pause_ended":
                self._paused.discard(id_ or EVERYTHING)
            case "breaker_opened" | "worker_reset":
                self._ended_at[id_] = entry.at
            case "worker_failed":
                self._crashed_at[id_] = entry.at
            case "run_overdue":
                self.by((id_, "overdue"), entry.at, lambda: self._untold((id_, OVERDUE, None), entry))
            case "breaker_closed":
                self._closed_at[entry.about] = entry.at
            case "worker_stopped" if self._paused.isdisjoint({id_, EVERYTHING}):
                self._ended_at[id_] = entry.at
                self._must_all_end(id_, entry.at, "its stop", OVERDUE)
            case "worker_stopped":
                self._stops_at[id_] = entry.at
                self._must_all_end(id_, entry.at, "its stop", OVERDUE, CRASHED)
            case "worker_died" if id_ in self.facts.workers:
                self._died(entry, id_ or "")
            case _:
                pass
        if entry.event in _NEW_BEGINNINGS:
            self._began_anew_at[id_] = entry.at
            self._must_end((id_, OVERDUE, None), entry.at, entry.event)
        if entry.event == "worker_reset":
            self._must_all_end(id_, entry.at, entry.event)

    def _died(self, entry: EventPublished, id_: str) -> None:
        worker = self.facts.workers[id_]
        decided = worker.decided.get(entry.generation)
        self._ended_at[id_] = entry.at
        if decided is None or severity_of(decided, worker.spec) is not None:
            self._crashed_at[id_] = entry.at
        elif worker.spec.is_task and decided.cause == "exited" and decided.code == 0:
            self._must_all_end(id_, entry.at, "its success")

    def _untold(self, key: Key, entry: EventPublished) -> str | None:
        is_known = key in self._active or self._resolved_at.get(key, -1.0) >= entry.at - EXACT_S
        return None if is_known else f"no alert is opened for {key[0]}, which is overdue"
