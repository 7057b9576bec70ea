"""Pure: how processes are ended: why, in which order, by which steps and with which waits."""

from __future__ import annotations

import signal as signals
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ...deaths.death import signal_name
from ..scenarios.history import (
    Announced,
    Asked,
    Decided,
    Ended,
    Ordered,
    Spawned,
    SpawnRefused,
    SupervisorStarted,
)
from ..scenarios.known_state import Facts
from ..scenarios.worker_facts import WorkerFacts
from .promise import EXACT_S, Deadlines, Promise

GRACEFUL, FIRM, KILL = range(3)
"""How firmly a stop ends a process."""
STACKS_S = 0.5
"""How long a hung worker has to write its stacks before it is ended."""


@dataclass(slots=True)
class _End:
    """The steps that were taken to end one process."""

    generation: int
    asked_at: float | None = None
    polite_at: float | None = None
    polite_level: int = GRACEFUL
    """How firm its stop was when it was sent its signal."""
    kills: int = 0
    killed_at: float = -1.0


class Stops(Promise):
    """A process is asked, then sent its stop signal, then SIGKILL; each step has its whole time."""

    rule: ClassVar[str] = "the stop ladder"

    def __init__(self, facts: Facts, deadlines: Deadlines) -> None:
        super().__init__(facts, deadlines)
        self._ends: dict[str, _End] = {}

    def hears(self) -> Mapping[type, Callable[[Any], Iterator[str] | None]]:
        """Requests and signals, and what leads to them."""
        return {
            SupervisorStarted: lambda _entry: self._ends.clear(),
            Spawned: self._spawned,
            Asked: self._asked,
            Decided: self._decided,
            Ordered: self._ordered,
            Ended: self._ended,
            Announced: self._announced,
        }

    def _spawned(self, entry: Spawned) -> None:
        self._ends.pop(entry.worker, None)
        worker = self.facts.workers[entry.worker]
        is_meant = worker.begun == entry.generation and worker.is_to_end
        if (is_meant or worker.stopped_at is not None) and self._ends_alone(entry.worker):
            # It was stopped while it was being started.
            self._must_begin(worker, entry.generation, entry.at)
            self._must_be_as_firm(entry.worker, entry.generation, worker.urgency, entry.at)

    def _ended(self, entry: Ended) -> None:
        self._ends.pop(entry.worker, None)
        self.done(entry.worker)
        self.done((entry.worker, "hastened"))

    def _ordered(self, entry: Ordered) -> None:
        if entry.order in ("stop", "shutdown", "restart"):
            for worker in self.facts.each(entry.worker):
                if worker.living is not None and self._ends_alone(worker.spec.id):
                    self._must_begin(worker, worker.living, entry.at)
                    if entry.urgency > worker.urgency:
                        self._must_be_as_firm(worker.spec.id, worker.living, entry.urgency, entry.at)

    def _ends_alone(self, id_: str) -> bool:
        """Whether its end waits for no other worker."""
        needed = {each for worker in self.facts.workers.values() for each in worker.spec.after}
        return id_ not in needed | self.facts.scheduled

    def _must_be_as_firm(self, id_: str, living: int, urgency: int, at: float) -> None:
        """An order that is firmer than the stop in progress takes the next step at once."""
        if urgency == GRACEFUL:
            return

        def why() -> str | None:
            end = self._ends.get(id_)
            if self.facts.workers[id_].living != living or end is None:
                return None
            is_firm = end.kills or (urgency == FIRM and end.polite_at is not None)
            return None if is_firm else f"{id_} #{living} is not ended more firmly, as ordered"

        self.by((id_, "hastened"), at, why)

    def _decided(self, entry: Decided) -> None:
        worker = self.facts.workers[entry.worker]
        if worker.living == entry.generation:
            self._must_begin(worker, entry.generation, entry.at + STACKS_S)

    def _must_begin(self, worker: WorkerFacts, living: int, due: float) -> None:
        id_ = worker.spec.id
        if id_ in self._ends:
            return  # it is being ended already

        def why() -> str | None:
            lives = self.facts.workers[id_].living == living
            return f"{id_} #{living} is not asked to end" if lives and id_ not in self._ends else None

        self.by(id_, due, why)

    def _asked(self, entry: Asked) -> Iterator[str]:
        worker = self.facts.workers[entry.worker]
        stop, name = worker.spec.stop, f"{entry.worker} #{entry.generation}"
        end = self._ends.setdefault(entry.worker, _End(entry.generation))
        firm = entry.generation in worker.decided or worker.urgency >= FIRM
        if not self.facts.an_actor_raised:
            yield from self._early(worker, entry, end, name)
        if entry.signal is None:
            end.asked_at = entry.at
            wait_s = stop.ask_s
        elif entry.signal == signals.SIGKILL:
            end.kills += 1
            end.killed_at = entry.at
            wait_s = stop.kill_s if end.kills < 2 else stop.last_s
        else:
            end.polite_at, end.polite_level = entry.at, self._level(worker, entry.generation)
            wait_s = stop.term_s if firm or end.asked_at is not None else stop.ask_s
        self.done(entry.worker)
        self.by(entry.worker, entry.at + wait_s, lambda: self._stuck(entry.worker, end))

    def _announced(self, entry: Announced) -> Iterator[str]:
        """That a process survives SIGKILL is told after both of them had their time, and not before."""
        if entry.event != "worker_unkillable" or entry.worker is None:
            return
        self.done(entry.worker)
        end = self._ends.get(entry.worker)
        if self.facts.an_actor_raised:
            return
        name, last_s = (
            f"{entry.worker} #{entry.generation}",
            self.facts.workers[entry.worker].spec.stop.last_s,
        )
        if end is None or end.kills < 2:
            yield f"{name} is called unkillable, but was not killed twice"
        elif entry.at < end.killed_at + last_s - EXACT_S:
            yield f"{name} is called unkillable {entry.at - end.killed_at:g} s after its last SIGKILL"

    def _level(self, worker: WorkerFacts, generation: int) -> int:
        """How firmly it is ended: one that was taken for dead is not asked."""
        return max(worker.urgency, FIRM if generation in worker.decided else GRACEFUL)

    def _stuck(self, id_: str, end: _End) -> str | None:
        if self._ends.get(id_) is not end or self.facts.workers[id_].living != end.generation:
            return None
        if end.kills >= 2:
            return f"{id_} #{end.generation} survives SIGKILL, which is not announced"
        return f"{id_} #{end.generation} is not ended: the next step of its stop is missing"

    def _early(self, worker: WorkerFacts, entry: Asked, end: _End, name: str) -> Iterator[str]:
        """Steps that come without a reason, too early, or before another one."""
        stop = worker.spec.stop
        hung = entry.generation in worker.decided
        ordered = max(worker.ordered_at, worker.recycled_at) >= worker.spawned_at or self.facts.is_paused(
            entry.worker, entry.at
        )
        if not ordered and not hung and worker.spec.limits is None:
            yield f"{name} is told to end without a reason"
        if entry.signal is None:
            if end.asked_at is not None or end.polite_at is not None:
                yield f"{name} is asked to stop once more, which prolongs its stop"
            return
        word = signal_name(entry.signal)
        if entry.signal != signals.SIGKILL and end.kills:
            yield f"{name} is sent {word} after SIGKILL, which prolongs its stop"
        elif entry.signal == signals.SIGKILL and end.kills:
            if entry.at < end.killed_at + stop.kill_s - EXACT_S:
                yield f"{name} is sent {word} again after {entry.at - end.killed_at:g} s, not {stop.kill_s:g}"
        elif entry.signal == stop.signal_number and end.polite_at is not None:
            if self._level(worker, entry.generation) <= end.polite_level:
                yield f"{name} is sent {word} once more, which prolongs its stop"
        elif entry.signal == stop.signal_number:
            polite = hung or worker.urgency >= FIRM or not worker.spec.run.reports_health
            if polite:
                return
            if end.asked_at is None:
                yield f"{name} is sent {word} without being asked to stop first"
            elif entry.at - end.asked_at < stop.ask_s - EXACT_S:
                waited = entry.at - end.asked_at
                yield f"{name} is sent {word} {waited:g} s after the request, not {stop.ask_s:g} s"
        elif worker.urgency == KILL:
            return
        elif end.polite_at is None and worker.spec.limits is None:
            yield f"{name} is sent {word} without {signal_name(stop.signal_number)} before it"
        elif end.polite_at is not None and not end.kills:
            firm = hung or worker.urgency >= FIRM
            wait_s = stop.term_s if firm or end.asked_at is not None else stop.ask_s
            if entry.at - end.polite_at < wait_s - EXACT_S:
                yield f"{name} is sent {word} after {entry.at - end.polite_at:g} s, not {wait_s:g}"


class ExpectedOrder(Promise):
    """A worker starts after the workers it needs, and stops before them."""

    rule: ClassVar[str] = "workers that need each other"

    def __init__(self, facts: Facts, deadlines: Deadlines) -> None:
        super().__init__(facts, deadlines)
        self._asked: set[tuple[str, int]] = set()
        self._unkillable: set[str] = set()

    def hears(self) -> Mapping[type, Callable[[Any], Iterator[str] | None]]:
        """Starts and stops; nothing if no worker needs another."""
        if not any(worker.spec.after for worker in self.facts.workers.values()):
            return {}
        return {
            SupervisorStarted: lambda _entry: self._asked.clear(),
            Spawned: self._starts,
            SpawnRefused: self._starts,
            Asked: self._ends,
            Announced: self._announced,
        }

    def _announced(self, entry: Announced) -> None:
        if entry.event == "worker_unkillable" and entry.worker is not None:
            self._unkillable.add(entry.worker)

    def _starts(self, entry: Spawned | SpawnRefused) -> Iterator[str]:
        spec = self.facts.workers[entry.worker].spec
        for id_ in spec.after:
            needed = self.facts.workers.get(id_)
            if needed is None or needed.lets_start(spec) or needed.status_since >= entry.at - EXACT_S:
                continue
            if not self.facts.an_actor_raised:
                yield f"{entry.worker} #{entry.generation} starts while {id_} is {needed.status}"

    def _ends(self, entry: Asked) -> Iterator[str]:
        worker = self.facts.workers[entry.worker]
        if (entry.worker, entry.generation) in self._asked or entry.generation in worker.decided:
            return
        self._asked.add((entry.worker, entry.generation))
        if self.facts.an_actor_raised or worker.recycled_at >= worker.spawned_at:
            return
        if worker.stopped_at is None and not self.facts.is_paused(entry.worker, entry.at):
            return  # an operator restarts it by name
        if worker.urgency == KILL or worker.process_since >= entry.at - EXACT_S:
            return  # a kill does not wait for others, and what starts in this moment is of no use yet
        for id_, other in self.facts.workers.items():
            if entry.worker in other.spec.after and self._is_to_end(id_, other, entry.at):
                yield f"{entry.worker} is stopped while {id_}, which needs it, still runs"

    def _is_to_end(self, id_: str, other: WorkerFacts, at: float) -> bool:
        if other.living is None or other.living in other.decided or id_ in self._unkillable:
            return False
        if self.facts.shut_down_at is not None or other.stopped_at is not None:
            return True
        return other.spec.pause_mode == "stop" and self.facts.is_paused(id_, at)
