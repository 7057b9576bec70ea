"""Pure: which workers are ended by the probe of their liveness, recomputed from its answers.

So many failures in a row end a worker, counted from the time when it is ready; a success resets the count.
A failure while the worker idles in a pause, or while its circuit breaker is open, ends none and resets it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from ...scenarios.history import (
    Announced,
    Decided,
    HostResumed,
    Idled,
    Ordered,
    ProbeAnswerHeard,
    Spawned,
    SupervisorStarted,
)
from ...scenarios.known_state import Facts
from ..promise import EXACT_S, Deadlines, Promise


class Liveness(Promise):
    """A worker is ended by its probe after as many failures in a row as its policy says."""

    rule: ClassVar[str] = "probes decide by failures in a row"

    def __init__(self, facts: Facts, deadlines: Deadlines) -> None:
        super().__init__(facts, deadlines)
        self._failed: dict[str, int] = {}
        """Failures in a row of each worker that is ready."""
        self._unsure: set[str] = set()
        """Workers whose failures may have been forgiven: an order, a sleep, an actor that raised."""
        self._idle: set[str] = set()
        self._turned_at: dict[str, float] = {}
        """When each breaker was opened or closed last."""

    def hears(self) -> Mapping[type, Callable[[Any], Iterator[str] | None]]:
        """Answers, and what is concluded from them; nothing if no worker is asked."""
        if not any(worker.spec.alive for worker in self.facts.workers.values()):
            return {}
        return {
            SupervisorStarted: lambda _entry: self._failed.clear(),
            Spawned: lambda entry: self._forget(entry.worker),
            Idled: self._idled,
            ProbeAnswerHeard: self._answered,
            HostResumed: lambda _entry: self._unsure.update(self.facts.workers),
            Ordered: self._ordered,
            Announced: self._announced,
            Decided: self._decided,
        }

    def _forget(self, worker: str) -> None:
        self._failed.pop(worker, None)
        self._unsure.discard(worker)
        self._idle.discard(worker)
        self.done(worker)

    def _idled(self, entry: Idled) -> None:
        """When it continues, nothing of the time before counts."""
        (self._idle.add if entry.idle else self._idle.discard)(entry.worker)
        if not entry.idle and entry.worker in self._failed:
            self._failed[entry.worker] = 0

    def _ordered(self, entry: Ordered) -> None:
        self._unsure.update(each.spec.id for each in self.facts.each(entry.worker))

    def _announced(self, entry: Announced) -> None:
        if entry.event in ("pause_began", "pause_ended"):
            self._unsure.update(each.spec.id for each in self.facts.each(entry.worker))
        if entry.event in ("breaker_opened", "breaker_closed"):
            self._turned_at[entry.about or ""] = entry.at
        if entry.event == "status_changed" and entry.new == "healthy" and entry.worker is not None:
            self._failed.setdefault(entry.worker, 0)

    def _answered(self, entry: ProbeAnswerHeard) -> None:
        if entry.worker not in self._failed:
            return
        if entry.is_good:
            self._failed[entry.worker] = 0
            self._unsure.discard(entry.worker)
            return
        worker = self.facts.workers[entry.worker]
        breaker = "" if worker.spec.breaker is None else worker.spec.breaker.name
        if entry.worker in self._idle or breaker in self.facts.open_breakers:
            self._failed[entry.worker] = 0
            return
        self._failed[entry.worker] += 1
        enough = worker.spec.alive is not None and self._failed[entry.worker] >= worker.spec.alive.failures
        is_sure = entry.worker not in self._unsure and self._turned_at.get(breaker, -1.0) < entry.at - EXACT_S
        if enough and is_sure:
            self.by(entry.worker, entry.at, lambda: self._overlooked(entry))

    def _overlooked(self, entry: ProbeAnswerHeard) -> str | None:
        worker = self.facts.workers[entry.worker]
        is_gone = worker.living != entry.generation or entry.generation in worker.decided
        breaker = "" if worker.spec.breaker is None else worker.spec.breaker.name
        is_spared = self._turned_at.get(breaker, -1.0) >= entry.at - EXACT_S  # it opened in this moment
        is_spared |= self.facts.an_actor_raised  # a monitor that raised begins to count again
        if is_gone or is_spared or worker.is_ending or self.facts.is_paused(entry.worker, entry.at):
            return None
        failed = self._failed.get(entry.worker, 0)
        return f"{entry.worker} #{entry.generation} fails its probe {failed} times and lives"

    def _decided(self, entry: Decided) -> Iterator[str]:
        worker = self.facts.workers[entry.worker]
        failed, alive = self._failed.get(entry.worker, 0), worker.spec.alive
        self._forget(entry.worker)
        if entry.generation in worker.decided or self.facts.an_actor_raised:
            return  # told once more
        if entry.cause == "probe_failed" and self._is_resting(entry):
            yield f"{entry.worker} #{entry.generation} is ended by its probe in a pause"
        elif entry.cause == "probe_failed" and alive is not None and failed < alive.failures:
            yield f"{entry.worker} #{entry.generation} is ended after {failed} failures, not {alive.failures}"

    def _is_resting(self, entry: Decided) -> bool:
        """Whether it has been paused for longer than its last answer can be on its way."""
        since = (self.facts.workers[entry.worker].paused_at, self.facts.paused_at)
        begun = min((at for at in since if at is not None), default=entry.at)
        return self.facts.is_paused(entry.worker, entry.at) and entry.at > begun + EXACT_S
