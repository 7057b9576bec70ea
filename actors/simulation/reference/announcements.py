"""Pure: everything that happens is announced once, and everything announced is published once, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from ..scenarios.history import (
    Announced,
    Asked,
    Concluded,
    Decided,
    Ended,
    EventPublished,
    EventsStored,
    Ordered,
    Spawned,
    SupervisorStarted,
)
from ..scenarios.known_state import Facts
from .promise import EXACT_S, Deadlines, Promise

PUBLISHED_S = 2.1
"""An event is published after its commit; from memory if that takes longer than two seconds."""


_ANNOUNCED = {
    "pause": "pause_began",
    "resume": "pause_ended",
    "reset": "worker_reset",
    "restart": "worker_reset",
}
"""What is announced of an order."""


class Publications(Promise):
    """Events are published in the order in which they are announced; none twice, none never."""

    rule: ClassVar[str] = "every event is published once"

    def __init__(self, facts: Facts, deadlines: Deadlines) -> None:
        super().__init__(facts, deadlines)
        self._waiting: deque[Announced] = deque()
        self._is_expected = False
        self._stored = 0

    def hears(self) -> Mapping[type, Callable[[Any], Iterator[str] | None]]:
        """Announcements, publications, and numbers in the store."""
        return {
            SupervisorStarted: self._supervisor_started,
            Announced: self._announced,
            EventPublished: self._published,
            EventsStored: self._kept,
            Concluded: self._concluded,
        }

    def _supervisor_started(self, _entry: SupervisorStarted) -> None:
        self._waiting.clear()
        self._is_expected = False

    def _announced(self, entry: Announced) -> None:
        if not self._is_expected:
            self._expect(entry)
        self._waiting.append(entry)

    def _expect(self, first: Announced) -> None:
        """Look when its time is over; if it is published by then, the look is for the next one."""
        self._is_expected = True

        def why() -> str | None:
            self._is_expected = False
            if not self._waiting or self._waiting[0] is first:
                return _never(first) if self._waiting else None
            self._expect(self._waiting[0])
            return None

        self.by("first", first.at + PUBLISHED_S, why)

    def _published(self, entry: EventPublished) -> Iterator[str]:
        if not self._waiting:
            yield f"event {entry.event} of {entry.worker or 'the system'} is published, but nothing waits"
            return
        first = self._waiting.popleft()
        if (first.event, first.worker, first.new) != (entry.event, entry.worker, entry.new or first.new):
            yield f"event {entry.event} of {entry.worker or 'the system'} is published, {first.event} is next"

    def _kept(self, entry: EventsStored) -> Iterator[str]:
        for number in entry.numbers:
            if number != self._stored + 1:
                yield f"event {number} is stored after event {self._stored}"
            self._stored = number

    def _concluded(self, _entry: Concluded) -> Iterator[str]:
        for each in self._waiting:
            if each.event != "store_recovered":  # announced by the commit with which everything ends
                yield _never(each)
                return


def _never(entry: Announced) -> str:
    return (
        f"event {entry.event} of {entry.worker or 'the system'}, announced at {entry.at:g}, is not published"
    )


class Announcements(Promise):
    """Starts, deaths, failures and stops are announced in the moment in which they happen."""

    rule: ClassVar[str] = "everything is announced"

    def __init__(self, facts: Facts, deadlines: Deadlines) -> None:
        super().__init__(facts, deadlines)
        self._told: dict[tuple[str, str | None], int] = {}
        """The generation of the last event of a kind, of each worker."""
        self._told_at: dict[tuple[str, str | None], float] = {}

    def hears(self) -> Mapping[type, Callable[[Any], Iterator[str] | None]]:
        """What happens, and what is announced."""
        return {
            Spawned: self._spawned,
            Ended: self._ended,
            Decided: self._decided,
            Announced: self._announced,
            Asked: self._asked,
            Ordered: self._ordered,
        }

    def _asked(self, entry: Asked) -> Iterator[str]:
        """A stop is announced before the process is told; an end after a death is part of the death."""
        is_told = self._told.get(("worker_stopping", entry.worker)) == entry.generation
        if is_told or entry.generation in self.facts.workers[entry.worker].decided:
            return
        if not self.facts.an_actor_raised:
            yield f"worker_stopping of {entry.worker} #{entry.generation} is not announced"

    def _ordered(self, entry: Ordered) -> Iterator[str]:
        """What an operator orders is announced in the moment in which it is answered."""
        event = _ANNOUNCED.get(entry.order)
        scope = self.facts if entry.worker is None else self.facts.workers[entry.worker]
        if event is None or (entry.order == "resume" and scope.paused_at is None):
            return
        if self._told_at.get((event, entry.worker), -1.0) < entry.at - EXACT_S:
            yield f"{event} of {entry.worker or 'the system'} is not announced"

    def _expect(self, event: str, worker: str | None, generation: int, at: float) -> None:
        name = worker or "the system"

        def why() -> str | None:
            if event == "worker_started" and not self._should_know(worker or "", generation):
                return None
            if event == "worker_stopped" and generation in self.facts.workers[worker or ""].decided:
                return None
            return f"{event} of {name}{f' #{generation}' if generation else ''} is not announced"

        self.by((event, worker, generation), at, why)

    def _should_know(self, id_: str, generation: int) -> bool:
        worker = self.facts.workers[id_]
        return worker.living == generation and worker.ordered_at < worker.spawned_at

    def _spawned(self, entry: Spawned) -> None:
        self._expect("worker_started", entry.worker, entry.generation, entry.at)

    def _ended(self, entry: Ended) -> None:
        worker = self.facts.workers[entry.worker]
        self.done(("worker_started", entry.worker, entry.generation))
        if entry.by == "supervisor" and entry.generation not in worker.decided:
            self._expect("worker_stopped", entry.worker, entry.generation, entry.at)

    def _decided(self, entry: Decided) -> None:
        if entry.generation in self.facts.workers[entry.worker].decided:
            return
        self._expect("worker_died", entry.worker, entry.generation, entry.at)
        if entry.action == "mark_failed":
            self._expect("worker_failed", entry.worker, entry.generation, entry.at)

    def _announced(self, entry: Announced) -> None:
        self.done((entry.event, entry.worker, entry.generation))
        self._told[entry.event, entry.worker] = entry.generation
        self._told_at[entry.event, entry.worker] = entry.at
