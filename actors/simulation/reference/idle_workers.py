"""Pure: a worker whose pause mode is `idle` is told to idle while it is paused, and to continue after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from ..scenarios.history import Announced, Idled, Ordered, Spawned, SupervisorStarted
from ..scenarios.known_state import Facts
from .promise import Deadlines, Promise


class IdleWorkers(Promise):
    """What a process was told last agrees with the pauses that are in force."""

    rule: ClassVar[str] = "paused workers idle"

    def __init__(self, facts: Facts, deadlines: Deadlines) -> None:
        super().__init__(facts, deadlines)
        self._idle: dict[str, int] = {}
        """The generations that were told to idle."""

    def hears(self) -> Mapping[type, Callable[[Any], Iterator[str] | None]]:
        """Pauses, and what processes are told; nothing if every pause ends processes."""
        if all(worker.spec.pause_mode == "stop" for worker in self.facts.workers.values()):
            return {}
        return {
            SupervisorStarted: lambda _entry: self._idle.clear(),
            Spawned: lambda entry: self._expect(entry.worker, entry.at),
            Idled: self._told,
            Ordered: lambda entry: self._expect(entry.worker, entry.at),
            Announced: self._announced,
        }

    def _told(self, entry: Idled) -> None:
        if entry.idle:
            self._idle[entry.worker] = entry.generation
        else:
            self._idle.pop(entry.worker, None)
        self._expect(entry.worker, entry.at)

    def _announced(self, entry: Announced) -> None:
        if entry.event in ("pause_began", "pause_ended"):
            self._expect(entry.worker, entry.at)

    def _expect(self, worker: str | None, at: float) -> None:
        for each in self.facts.each(worker):
            id_ = each.spec.id
            if each.spec.pause_mode == "idle":
                self.by(id_, at, lambda id_=id_: self._disagrees(id_))  # type: ignore[misc]

    def _disagrees(self, id_: str) -> str | None:
        worker = self.facts.workers[id_]
        living = worker.living
        if living is None or living in worker.decided or worker.is_to_end or worker.stopped_at is not None:
            return None
        is_paused = worker.paused_at is not None or self.facts.paused_at is not None
        if is_paused == (self._idle.get(id_) == living):
            return None
        return (
            f"{id_} #{living} is {'paused but not told to idle' if is_paused else 'told to idle, not paused'}"
        )
