"""Pure: when a worker is healthy for the first time, recomputed from what the monitor was told.

It is when all conditions of its spec are met, and its process has lived as long as the spec says; one second,
if it is a program that says nothing of itself and its spec names no condition. It dies of its start if that
takes too long; a recovery does not count, nor that it only has to live on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ....spec.worker_spec import WorkerSpec
from ...scenarios.history import (
    Announced,
    ConditionMet,
    Decided,
    Heard,
    HostResumed,
    Idled,
    Ordered,
    Spawned,
    SupervisorStarted,
)
from ...scenarios.known_state import Facts
from ..promise import EXACT_S, Deadlines, Promise

DEFAULT_S = 1.0
FRAME = "frame"
_LOOKED_AT = ("http", "tcp", "command", "output", "notify")


@dataclass(slots=True)
class _Start:
    """A process that is not ready yet."""

    generation: int
    at: float
    since: float
    """When its start began; a recovery does not count."""
    awaits: set[str]
    lives_s: float
    met: set[str] = field(default_factory=set)
    recovers_since: float | None = None
    again_at: float = -1.0
    """When its time may have begun again: the host slept, or it was paused."""
    is_idle: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether it only has to live on."""
        return self.recovers_since is None and self.awaits <= self.met


class Readiness(Promise):
    """A worker is ready when all that its spec names has happened, and not before."""

    rule: ClassVar[str] = "ready means ready"

    def __init__(self, facts: Facts, deadlines: Deadlines) -> None:
        super().__init__(facts, deadlines)
        self._starts: dict[str, _Start] = {}

    def hears(self) -> Mapping[type, Callable[[Any], Iterator[str] | None]]:
        """Starts, conditions, frames, and changes of health."""
        return {
            SupervisorStarted: lambda _entry: self._starts.clear(),
            Spawned: self._spawned,
            ConditionMet: self._met,
            Heard: self._heard,
            HostResumed: lambda entry: self._disturbed(None, entry.at),
            Idled: self._idled,
            Ordered: self._ordered,
            Announced: self._announced,
            Decided: self._decided,
        }

    def _spawned(self, entry: Spawned) -> None:
        worker = self.facts.workers[entry.worker]
        spec = worker.spec
        since = worker.begun_at if worker.begun == entry.generation else entry.at
        awaits = _conditions(spec) | ({FRAME} if spec.run.reports_health else set())
        start = _Start(entry.generation, entry.at, since, awaits, _lives_s(spec))
        self._starts[entry.worker] = start
        if start.is_complete:
            self._must_be_ready(entry.worker, start, entry.at)
        if spec.ready is not None:
            self._must_end(entry.worker, start)

    def _disturbed(self, worker: str | None, at: float) -> None:
        for each in self.facts.each(worker):
            start = self._starts.get(each.spec.id)
            if start is not None:
                start.again_at = at
                if each.spec.ready is not None:
                    self._must_end(each.spec.id, start)

    def _idled(self, entry: Idled) -> None:
        """It has the whole time of a start again when a pause ends in which it idled."""
        start = self._starts.get(entry.worker)
        if start is None or start.generation != entry.generation:
            return
        is_over = start.is_idle and not entry.idle and start.recovers_since is None
        start.is_idle = entry.idle
        if is_over and self.facts.workers[entry.worker].begun != entry.generation:
            start.since = entry.at
        self._disturbed(entry.worker, entry.at)

    def _ordered(self, entry: Ordered) -> None:
        if entry.order in ("pause", "resume"):
            self._disturbed(entry.worker, entry.at)

    # ── what it awaits ───────────────────────────────────────────────────────────────────

    def _of(self, entry: ConditionMet | Heard) -> _Start | None:
        start = self._starts.get(entry.worker)
        return start if start is not None and start.generation == entry.generation else None

    def _met(self, entry: ConditionMet) -> None:
        if (start := self._of(entry)) is not None:
            start.met.add(entry.condition)
            self._look(entry.worker, start, entry.at)

    def _heard(self, entry: Heard) -> None:
        start = self._of(entry)
        if start is None:
            return
        may_recover = self.facts.workers[entry.worker].spec.health.recovery_max_s is not None
        if entry.status == "recovering" and may_recover:
            start.met.discard(FRAME)
            if start.recovers_since is None:
                start.recovers_since = entry.at
        elif entry.status == "healthy":
            start.met.add(FRAME)
            if start.recovers_since is not None:
                start.since += entry.at - start.recovers_since
                start.recovers_since = None
                self._must_end(entry.worker, start)
            self._look(entry.worker, start, entry.at)

    def _look(self, id_: str, start: _Start, at: float) -> None:
        if start.is_complete:
            self._must_be_ready(id_, start, max(at, start.at + start.lives_s))

    def _must_be_ready(self, id_: str, start: _Start, by: float) -> None:
        due = max(by, start.at + start.lives_s)

        def why() -> str | None:
            if not start.is_complete or not self._is_watched(id_, start) or self.facts.an_actor_raised:
                return None
            return f"{id_} #{start.generation} is not ready, and has nothing to wait for since {due:g}"

        self.by((id_, "ready"), due, why)

    def _must_end(self, id_: str, start: _Start) -> None:
        since = max(start.since, start.again_at)
        due = since + self.facts.workers[id_].spec.health.startup_timeout_s

        def why() -> str | None:
            is_same = max(start.since, start.again_at) == since and start.recovers_since is None
            if start.is_complete or not is_same or not self._is_watched(id_, start):
                return None
            if self.facts.an_actor_raised:
                return None
            return f"{id_} #{start.generation} is not given up at {due:g}, although it is not ready"

        self.by((id_, "given up"), due, why)

    def _is_watched(self, id_: str, start: _Start) -> bool:
        worker = self.facts.workers[id_]
        is_awaited = self._starts.get(id_) is start and worker.living == start.generation
        return is_awaited and not worker.is_ending and start.generation not in worker.decided

    # ── conclusions ──────────────────────────────────────────────────────────────────────

    def _decided(self, entry: Decided) -> Iterator[str]:
        start = self._starts.pop(entry.worker, None)
        if start is None or start.generation != entry.generation or entry.cause != "startup_timeout":
            return
        spec = self.facts.workers[entry.worker].spec
        at = entry.at if entry.died_at is None else entry.died_at
        if self.facts.an_actor_raised or spec.ready is None:
            return
        name = f"{entry.worker} #{entry.generation}"
        if start.recovers_since is not None:
            yield f"{name} is dead by {entry.cause} while it recovers"
        elif start.is_complete:
            yield f"{name} is dead by {entry.cause}, and only had to live on"
        elif at < start.since + spec.health.startup_timeout_s - EXACT_S:
            yield f"{name} is dead by {entry.cause} after {at - start.since:g} s"

    def _announced(self, entry: Announced) -> Iterator[str]:
        if entry.event in ("pause_began", "pause_ended"):
            self._disturbed(entry.worker, entry.at)
        start = self._starts.get(entry.worker or "")
        if entry.event != "status_changed" or entry.new != "healthy" or start is None:
            return
        if start.generation != entry.generation:
            return
        del self._starts[entry.worker or ""]
        name = f"{entry.worker} #{entry.generation}"
        for condition in sorted(start.awaits - start.met):
            yield f"{name} is healthy, but its condition {condition} is not met"
        if entry.at < start.at + start.lives_s - EXACT_S:
            yield f"{name} is healthy after {entry.at - start.at:g} s, not {start.lives_s:g} s"


def _conditions(spec: WorkerSpec) -> set[str]:
    if spec.ready is None:
        return set()
    return {name for name in _LOOKED_AT if getattr(spec.ready, name) not in (None, False)}


def _lives_s(spec: WorkerSpec) -> float:
    if spec.ready is not None and spec.ready.after_s is not None:
        return spec.ready.after_s
    says_nothing = not spec.run.reports_health and not _conditions(spec)
    return DEFAULT_S if says_nothing else 0.0
