"""Pure: restarts come when they are due, also those that an earlier supervisor decided; starts are paced."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from ..scenarios.history import (
    Announced,
    Decided,
    Ended,
    Ordered,
    SpawnBegun,
    Spawned,
    SpawnRefused,
    SupervisorStarted,
)
from ..scenarios.known_state import Facts
from .promise import EXACT_S, Deadlines, Promise

SAVED_S = 2.0
"""How long a restart waits at most for a database that does not answer."""


class ExpectedStarts(Promise):
    """A restart is not late, and a generation is used once, over all lives of the supervisor."""

    rule: ClassVar[str] = "restarts come in time"

    def __init__(self, facts: Facts, deadlines: Deadlines) -> None:
        super().__init__(facts, deadlines)
        self._generations: dict[str, int] = {}
        """The highest one of each worker, over all lives of the supervisor."""

    def hears(self) -> Mapping[type, Callable[[Any], Iterator[str] | None]]:
        """Everything that makes a start due, and everything that holds it back."""
        return {
            SupervisorStarted: self._supervisor_started,
            Decided: self._decided,
            Ended: self._ended,
            Ordered: self._ordered,
            SpawnBegun: self._spawned,
            Spawned: self._spawned,
            SpawnRefused: self._spawned,
            Announced: self._announced,
        }

    def _supervisor_started(self, entry: SupervisorStarted) -> None:
        for id_ in self.facts.workers.keys() - self.facts.scheduled:
            self.by(id_, entry.at, lambda id_=id_: self._begin(id_))  # type: ignore[misc]

    def _begin(self, id_: str) -> str | None:
        """A supervisor starts its workers at once, or when a delay that it remembers is over."""
        worker = self.facts.workers[id_]
        if worker.spawned or worker.refused or worker.begun or self._is_held(id_):
            return None
        due = worker.not_before
        if due is not None:
            self.by(id_, due, lambda: self._late(id_, due))
            return None
        return f"{id_} is not started with its supervisor"

    def _decided(self, entry: Decided) -> None:
        restarts = entry.action in ("restart", "restart_uncounted")
        if not restarts or entry.generation in self.facts.workers[entry.worker].decided:
            return
        at = entry.at if entry.died_at is None else entry.died_at
        self._expect(entry.worker, at + entry.delay_ms / 1000, entry.at)

    def _expect(self, id_: str, due: float, now: float) -> None:
        # The death has to be in the store first, unless the store takes too long.
        latest = max(due, now) if self.store_is_settled(now) else max(due, now + SAVED_S)
        self.by(id_, latest, lambda: self._late(id_, latest))

    def _late(self, id_: str, due: float) -> str | None:
        worker = self.facts.workers[id_]
        if self._is_held(id_) or worker.not_before is None or worker.living is not None:
            return None
        if not self.store_is_settled(due) and due < worker.not_before + SAVED_S:
            self.by(id_, due + SAVED_S, lambda: self._late(id_, due + SAVED_S))
            return None
        return f"{id_} is not restarted, due at {due:g}"

    def _is_held(self, id_: str) -> bool:
        worker = self.facts.workers[id_]
        return (
            worker.failed_at is not None
            or worker.stopped_at is not None
            or worker.left
            or bool(worker.spec.after or worker.spec.membership)
            or (worker.spec.breaker is not None and worker.spec.breaker.name in self.facts.open_breakers)
            or self.facts.shut_down_at is not None
            or self.facts.starts_are_paced
            or worker.paused_at is not None
            or self.facts.paused_at is not None
        )

    def _ended(self, entry: Ended) -> None:
        """One that was taken for dead and lived on: its restart waits for its end."""
        worker = self.facts.workers[entry.worker]
        if entry.generation in worker.decided and worker.not_before is not None:
            self._expect(entry.worker, worker.not_before, entry.at)

    def _ordered(self, entry: Ordered) -> None:
        for worker in self.facts.each(entry.worker):
            self.done(worker.spec.id)
            is_paused = worker.paused_at is not None or self.facts.paused_at is not None
            if entry.order == "resume" and is_paused and worker.spec.id not in self.facts.scheduled:
                self._must_resume(worker.spec.id, entry.at)

    def _must_resume(self, id_: str, at: float) -> None:
        """The end of a pause starts a worker at once, also one whose restart was pending when it began."""

        def why() -> str | None:
            worker = self.facts.workers[id_]
            is_back = worker.spawned_at >= at - EXACT_S or worker.refused_at >= at - EXACT_S
            if self._is_held(id_) or is_back or worker.has_process:
                return None
            return f"{id_} is not started when its pause ends"

        self.by(id_, at, why)

    def _announced(self, entry: Announced) -> None:
        if entry.event in ("pause_began", "pause_ended"):
            for worker in self.facts.each(entry.worker):
                self.done(worker.spec.id)

    def _spawned(self, entry: SpawnBegun | Spawned | SpawnRefused) -> Iterator[str]:
        if self.facts.workers[entry.worker].begun == entry.generation:
            return  # it was checked when its start began
        self.done(entry.worker)
        last = self._generations.get(entry.worker, 0)
        if entry.generation <= last:
            yield f"{entry.worker} #{entry.generation} starts after #{last}"
        self._generations[entry.worker] = max(last, entry.generation)
        worker = self.facts.workers[entry.worker]
        by_itself = (
            worker.left and not worker.resumes and (worker.spec.temporary or not worker.spec.membership)
        )
        if by_itself and not self.facts.an_actor_raised:
            yield f"{entry.worker} #{entry.generation} starts although it is not to be restarted"
        death = worker.decided.get(max(worker.decided, default=0))
        if death is None or not death.action.startswith("restart") or worker.not_before is None:
            return
        if death.generation not in worker.stored and entry.at < death.at + SAVED_S - EXACT_S:
            name = f"{entry.worker} #{entry.generation}"
            yield f"{name} starts before the death of #{death.generation} is stored"


class Pacing(Promise):
    """A worker starts until it is healthy or has ended, and no more start at a time than the limit allows."""

    rule: ClassVar[str] = "no more starts at a time than allowed"

    def __init__(self, facts: Facts, deadlines: Deadlines) -> None:
        super().__init__(facts, deadlines)
        self._starting: dict[str, int] = {}
        """The generations that have started and are not healthy yet."""

    def hears(self) -> Mapping[type, Callable[[Any], Iterator[str] | None]]:
        """Starts, ends and health; nothing without a limit."""
        if self.facts.most_starts is None:
            return {}
        return {
            SupervisorStarted: lambda _entry: self._starting.clear(),
            Spawned: self._spawned,
            Ended: lambda entry: self._is_over(entry.worker, entry.generation),
            Announced: self._announced,
        }

    def _spawned(self, entry: Spawned) -> Iterator[str]:
        self._starting[entry.worker] = entry.generation
        most = self.facts.most_starts
        if most is not None and len(self._starting) > most and not self.facts.an_actor_raised:
            names = ", ".join(self._starting)
            yield f"{names} start at the same time, more than {most}"

    def _announced(self, entry: Announced) -> None:
        is_over = entry.event == "status_changed" and entry.new in ("healthy", "dead", "failed")
        if entry.worker is not None and (is_over or entry.event == "worker_died"):
            self._is_over(entry.worker, entry.generation)

    def _is_over(self, worker: str, generation: int) -> None:
        if self._starting.get(worker) == generation:
            del self._starting[worker]
