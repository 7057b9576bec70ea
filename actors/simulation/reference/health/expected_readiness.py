"""Pure: when a worker may be healthy for the first time, recomputed from what the monitor was told.

All conditions of its spec are met, and its process has lived as long as the spec says; one second, if it
is a program that says nothing of itself and its spec names no condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ....spec.worker_spec import WorkerSpec
from ...scenarios.history import Announced, ConditionMet, Spawned, SupervisorStarted
from ...scenarios.known_state import Facts
from ..promise import EXACT_S, Deadlines, Promise

DEFAULT_S = 1.0
_LOOKED_AT = ("http", "tcp", "command", "output", "notify")


@dataclass(slots=True)
class _Start:
    """A process that is not ready yet."""

    generation: int
    at: float
    awaits: set[str]
    lives_s: float
    met: set[str] = field(default_factory=set)


class Readiness(Promise):
    """A worker is ready when all that its spec names has happened, and not before."""

    rule: ClassVar[str] = "ready means ready"

    def __init__(self, facts: Facts, deadlines: Deadlines) -> None:
        super().__init__(facts, deadlines)
        self._starts: dict[str, _Start] = {}

    def hears(self) -> Mapping[type, Callable[[Any], Iterator[str] | None]]:
        """Starts, conditions, and changes of health."""
        return {
            SupervisorStarted: lambda _entry: self._starts.clear(),
            Spawned: self._spawned,
            ConditionMet: self._met,
            Announced: self._announced,
        }

    def _spawned(self, entry: Spawned) -> None:
        spec = self.facts.workers[entry.worker].spec
        start = _Start(entry.generation, entry.at, _conditions(spec), _lives_s(spec))
        self._starts[entry.worker] = start
        if not start.awaits and not spec.run.reports_health:
            self.by(entry.worker, entry.at + start.lives_s, lambda: self._late(entry.worker, start))

    def _late(self, id_: str, start: _Start) -> str | None:
        worker = self.facts.workers[id_]
        is_awaited = self._starts.get(id_) is start and worker.living == start.generation
        if not is_awaited or worker.is_ending or start.generation in worker.decided:
            return None
        return f"{id_} #{start.generation} is not ready after it has lived for {start.lives_s:g} s"

    def _met(self, entry: ConditionMet) -> None:
        start = self._starts.get(entry.worker)
        if start is not None and start.generation == entry.generation:
            start.met.add(entry.condition)

    def _announced(self, entry: Announced) -> Iterator[str]:
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
