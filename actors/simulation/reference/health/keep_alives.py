"""Pure: a worker that promised keep-alives is ended when they stop, and not before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from ...scenarios.history import (
    Announced,
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


class KeepAlives(Promise):
    """The time runs from the moment in which the worker is ready, and again from each keep-alive."""

    rule: ClassVar[str] = "keep-alives are awaited"

    def __init__(self, facts: Facts, deadlines: Deadlines) -> None:
        super().__init__(facts, deadlines)
        self._every_s = {
            id_: every_s
            for id_, worker in facts.workers.items()
            if worker.spec.ready is not None and (every_s := worker.spec.ready.watchdog_s) is not None
        }
        self._fed: dict[str, float] = {}
        """When the last keep-alive of a worker came that is ready, or since when it is ready."""
        self._idle: dict[str, int] = {}
        """The generations that were told to idle."""
        self._unsure: set[str] = set()
        """Workers whose time may have begun again: the host slept, or they were paused."""

    def hears(self) -> Mapping[type, Callable[[Any], Iterator[str] | None]]:
        """Keep-alives and health; nothing if no worker promises any."""
        if not self._every_s:
            return {}
        return {
            SupervisorStarted: lambda _entry: self._fed.clear(),
            Spawned: lambda entry: self._forget(entry.worker),
            Heard: self._heard,
            Idled: self._idled,
            HostResumed: lambda _entry: self._unsure.update(self._every_s),
            Ordered: lambda entry: self._unsure.update(
                each.spec.id for each in self.facts.each(entry.worker)
            ),
            Announced: self._announced,
            Decided: self._decided,
        }

    def _forget(self, worker: str) -> None:
        self._fed.pop(worker, None)
        self._unsure.discard(worker)
        self.done(worker)

    def _idled(self, entry: Idled) -> None:
        """When it continues after a pause in which it idled, its time begins again."""
        if entry.worker not in self._every_s:
            return
        if entry.idle:
            self._idle[entry.worker] = entry.generation
        elif self._idle.pop(entry.worker, None) == entry.generation and entry.worker in self._fed:
            self._feed(entry.worker, entry.generation, entry.at)

    def _heard(self, entry: Heard) -> None:
        if entry.status == "alive" and entry.worker in self._fed:
            self._feed(entry.worker, entry.generation, entry.at)

    def _announced(self, entry: Announced) -> None:
        if entry.event in ("pause_began", "pause_ended"):
            self._unsure.update(each.spec.id for each in self.facts.each(entry.worker))
        if entry.event == "status_changed" and entry.worker in self._every_s and entry.new == "healthy":
            self._feed(entry.worker, entry.generation, entry.at)

    def _feed(self, id_: str, generation: int, at: float) -> None:
        self._fed[id_] = at
        if not self.facts.is_paused(id_, at):
            self._unsure.discard(id_)
        self.by(id_, at + self._every_s[id_], lambda: self._overlooked(id_, generation, at))

    def _overlooked(self, id_: str, generation: int, at: float) -> str | None:
        worker = self.facts.workers[id_]
        is_same = worker.living == generation and self._fed.get(id_) == at and id_ not in self._unsure
        is_over = worker.is_ending or generation in worker.decided or self.facts.is_paused(id_, at)
        if not is_same or is_over or self.facts.an_actor_raised:
            return None
        return f"{id_} #{generation} sends no keep-alive for {self._every_s[id_]:g} s, and lives"

    def _decided(self, entry: Decided) -> Iterator[str]:
        fed, every_s = self._fed.get(entry.worker), self._every_s.get(entry.worker)
        is_sure = entry.worker not in self._unsure and not self.facts.an_actor_raised
        self._forget(entry.worker)
        if entry.cause != "heartbeat_lost" or every_s is None or not is_sure:
            return
        at = entry.at if entry.died_at is None else entry.died_at
        if fed is None:
            yield f"{entry.worker} #{entry.generation} misses keep-alives before it is ready"
        elif at < fed + every_s - EXACT_S:
            yield f"{entry.worker} #{entry.generation} is dead {at - fed:g} s after its last keep-alive"
