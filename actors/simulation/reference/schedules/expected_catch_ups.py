"""Pure: missed runs are made up for once, if their schedule wants it, and what never succeeds is overdue."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ...scenarios.history import Announced, HostResumed, Moved, Ordered, Stored, SupervisorStarted
from ...scenarios.known_state import Facts
from ...scenarios.run_entries import RunRecorded
from ..promise import EXACT_S, Deadlines, Promise
from .expected_schedules import LOOKS_S
from .period import period_ms

_OWED = frozenset({"supervisor_down", "supervisor_lost", "shutdown", "late", "paused"})
"""Why a run did not happen that is made up for."""
_WANTED = frozenset({"paused", "stopped", "shutdown", "configuration_change"})
"""Why a run did not happen that is nothing to worry about."""


@dataclass(slots=True)
class _Worker:
    """What is owed to one worker, and since when it has not succeeded."""

    period_ms: int
    since_ms: int | None = 0
    """None: not known after the clock was set far back."""
    last: int = 0
    """The number of its latest record."""
    is_owed: bool = False
    is_overdue: bool = False
    is_sure: bool = True
    """Whether nothing is known to the supervisor that was not stored when the former one was killed."""
    told_at: float = -1.0
    """When it should be announced as overdue."""
    open: int | None = None
    """The run that waits or is running."""
    changed_at: float = 0.0
    """When something last changed that may be in the way of a run."""
    stored: Mapping[str, Any] | None = None


class CatchUps(Promise):
    """One run follows those that were missed; two periods without a success are announced once."""

    rule: ClassVar[str] = "missed runs are made up for"

    def __init__(self, facts: Facts, deadlines: Deadlines) -> None:
        super().__init__(facts, deadlines)
        self._workers = {
            id_: _Worker(period)
            for id_, worker in facts.workers.items()
            if worker.spec.schedule is not None and (period := period_ms(worker.spec.schedule)) is not None
        }

    def hears(self) -> Mapping[type, Callable[[Any], Iterator[str] | None]]:
        """Runs, and what holds them back; nothing if no worker is scheduled."""
        if not self._workers:
            return {}
        return {
            RunRecorded: self._recorded,
            SupervisorStarted: self._started,
            Stored: self._kept,
            Announced: self._announced,
            Moved: self._moved,
            Ordered: lambda entry: self._changed(entry.worker, entry.at),
            HostResumed: lambda entry: self._changed(None, entry.at),
        }

    def _kept(self, entry: Stored) -> None:
        kind, _, id_ = (entry.worker or "").partition(":")
        if entry.kind == "meta" and kind == "schedule" and entry.value is not None:
            self._workers[id_].stored = json.loads(entry.value)

    def _started(self, entry: SupervisorStarted) -> None:
        """A supervisor remembers what its predecessor had time to write down."""
        for id_, worker in self._workers.items():
            stored = worker.stored
            if stored is None:
                worker.since_ms = entry.wall_ms
                continue
            runs = [each["number"] for each in (stored["current"], stored["queued"]) if each is not None]
            known = (worker.since_ms, worker.last, worker.open)
            worker.is_sure = known == (stored["since_ms"], stored["number"], min(runs, default=None))
            if not worker.is_sure:
                worker.since_ms, worker.last = stored["since_ms"], stored["number"]
                worker.is_owed, worker.is_overdue = stored["owed"], stored["overdue"]
            worker.open, worker.changed_at, worker.told_at = None, entry.at, -1.0
            self._expect(id_, entry.at)

    def _moved(self, entry: Moved) -> None:
        if entry.word == "set_clock" and float(entry.what.split()[-1]) < 0:
            for worker in self._workers.values():
                worker.since_ms = None

    def _changed(self, id_: str | None, at: float) -> None:
        for worker in self._workers.values() if id_ is None else filter(None, [self._workers.get(id_)]):
            worker.changed_at = at

    # ── runs ─────────────────────────────────────────────────────────────────────────────

    def _recorded(self, entry: RunRecorded) -> Iterator[str]:
        worker = self._workers.get(entry.worker)
        if worker is None:
            return
        worker.last = max(worker.last, entry.number)
        if entry.state == "waiting":
            if worker.open is None:
                worker.open = entry.number
            yield from self._makes_up(worker, entry)
        elif entry.state == "running":
            worker.open, worker.is_owed, worker.is_sure = entry.number, False, True
        else:
            self._over(worker, entry)

    def _makes_up(self, worker: _Worker, entry: RunRecorded) -> Iterator[str]:
        if entry.trigger != "catch_up":
            return
        policy, name = self.facts.workers[entry.worker].spec.schedule, f"run {entry.number} of {entry.worker}"
        if policy is not None and policy.missed == "skip":
            yield f"{name} makes up for others, which its schedule does not want"
        elif worker.is_sure and not worker.is_owed and not self.facts.an_actor_raised:
            yield f"{name} makes up for others, and none was missed"

    def _over(self, worker: _Worker, entry: RunRecorded) -> None:
        if entry.number == worker.open:
            worker.open = None
        if entry.state == "succeeded":
            worker.since_ms, worker.is_overdue, worker.is_sure = entry.wall_ms, False, True
            return
        if entry.state in ("missed", "lost", "stopped") and entry.reason in _OWED:
            worker.is_owed = True
        self._expect(entry.worker, entry.at)
        is_counted = entry.state != "lost" and (entry.state, entry.reason) != ("skipped", "replaced")
        if not is_counted or entry.reason in _WANTED or worker.is_overdue:
            return
        if worker.since_ms is None:
            return
        second_ms = (worker.since_ms // worker.period_ms + 2) * worker.period_ms
        if entry.last_due_ms >= second_ms:
            worker.is_overdue, worker.told_at = True, entry.at
            self.by((entry.worker, "overdue"), entry.at, lambda: self._untold(entry.worker, worker))

    # ── overdue ──────────────────────────────────────────────────────────────────────────

    def _untold(self, id_: str, worker: _Worker) -> str | None:
        if worker.told_at < 0 or not worker.is_sure or self.facts.an_actor_raised:
            return None
        return f"{id_} has not succeeded for two periods, which is not announced"

    def _announced(self, entry: Announced) -> Iterator[str]:
        if entry.event in ("pause_began", "pause_ended"):
            self._changed(entry.worker, entry.at)
        worker = self._workers.get(entry.worker or "")
        if entry.event != "run_overdue" or worker is None:
            return
        expected, worker.told_at = worker.told_at, -1.0
        is_known = worker.is_sure and worker.since_ms is not None
        if expected < entry.at - EXACT_S and is_known and not self.facts.an_actor_raised:
            yield f"{entry.worker} is called overdue, and is not"
        worker.is_overdue = True

    # ── what is owed ─────────────────────────────────────────────────────────────────────

    def _expect(self, id_: str, at: float) -> None:
        self.by((id_, "owed"), at + LOOKS_S, lambda: self._unmade(id_, at + LOOKS_S))

    def _unmade(self, id_: str, now: float) -> str | None:
        worker, facts = self._workers[id_], self.facts.workers[id_]
        policy = facts.spec.schedule
        if not worker.is_owed or policy is None or policy.missed == "skip" or worker.open is not None:
            return None
        is_held = facts.stopped_at is not None or self.facts.is_paused(id_, now)
        if is_held or worker.changed_at > now - LOOKS_S + EXACT_S:
            self._expect(id_, max(worker.changed_at, now - LOOKS_S + 1.0))
            return None
        if self.facts.shut_down_at is not None or self.facts.an_actor_raised:
            return None
        return f"runs of {id_} were missed, and none makes up for them"
