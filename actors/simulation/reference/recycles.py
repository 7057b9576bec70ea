"""Pure: workers get a new process at the age that their policy says, if the others can spare them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from ..scenarios.history import Announced, Spawned
from ..scenarios.worker_facts import WorkerFacts
from .promise import EXACT_S, Promise


class Recycles(Promise):
    """A worker is recycled in time, never too early, and never beside others of its group that are down."""

    rule: ClassVar[str] = "recycles follow the policy"

    def hears(self) -> Mapping[type, Callable[[Any], Iterator[str] | None]]:
        """Starts and recycles; nothing if no worker is recycled by its age."""
        recycled = [each.spec.recycle for each in self.facts.workers.values()]
        if not any(policy is not None and policy.after_s is not None for policy in recycled):
            return {}
        return {Spawned: self._spawned, Announced: self._announced}

    def _spawned(self, entry: Spawned) -> None:
        recycle = self.facts.workers[entry.worker].spec.recycle
        if recycle is not None and recycle.after_s is not None:
            due = entry.at + recycle.after_s
            self.by(entry.worker, due, lambda: self._overdue(entry, due))

    def _overdue(self, entry: Spawned, due: float) -> str | None:
        worker = self.facts.workers[entry.worker]
        if worker.living != entry.generation or worker.ordered_at >= worker.spawned_at:
            return None
        wanted = worker.status == "healthy" and not self.facts.is_paused(entry.worker, due)
        if not wanted or worker.recycled_at >= entry.at or self._missing(worker, due):
            return None
        if self.facts.shut_down_at is not None or self.facts.starts_are_paced:
            return None
        return f"{entry.worker} #{entry.generation} is not recycled at {due:g}"

    def _announced(self, entry: Announced) -> Iterator[str]:
        worker = self.facts.workers.get(entry.worker or "")
        if worker is None or entry.event != "worker_recycled":
            return
        recycle, age = worker.spec.recycle, entry.at - worker.spawned_at
        if recycle is None or recycle.after_s is None or recycle.after_jobs or recycle.above_memory_mb:
            return
        if age < recycle.after_s * (1 - recycle.jitter) - EXACT_S:
            yield f"{entry.worker} is recycled at an age of {age:g} s, not {recycle.after_s:g}"
        missing = self._missing(worker, entry.at, settled=True)
        is_sure = not self.facts.an_actor_raised and self.facts.resumed_at < entry.at - EXACT_S
        if recycle.min_healthy is None and missing and is_sure:
            yield f"{entry.worker} is recycled while {', '.join(missing)} of its group is down"

    def _missing(self, worker: WorkerFacts, at: float, *, settled: bool = False) -> list[str]:
        """The others of its group that should run and are not healthy; `settled`: and were not just now."""
        return [
            id_
            for id_, other in self.facts.workers.items()
            if other is not worker and other.spec.group == worker.spec.group and worker.spec.group
            if other.failed_at is None and other.stopped_at is None and not other.left
            if other.status != "healthy" or (not settled and _is_in_change(other, at))
            if not settled or (other.status_since < at - EXACT_S and not self.facts.is_paused(id_, at))
        ]


def _is_in_change(worker: WorkerFacts, at: float) -> bool:
    """Whether it has just become healthy, is being ended, or has no process."""
    ended = max(worker.ordered_at, worker.recycled_at) >= worker.spawned_at
    return worker.status_since > at - 1.0 or worker.living is None or ended
