"""What is set for queues that are kept in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from rekindle.actors.facts.jobs import NewJob
from rekindle.actors.facts.queues import PeriodicPlan, PeriodicView, QueueLimits, QueuePause, Rate
from rekindle.actors.spec.job_payload import new_pause

CLOCKS_DIFFER_MS = 60_000
"""As for the queues of a database, whose workers may run on several hosts."""


class MemoryQueues:
    """The pauses of the queues, and the periodic jobs."""

    def __init__(self, wall_ms: Callable[[], int]) -> None:
        self.wall_ms = wall_ms
        """The clock; a simulation sets its own."""
        self._pauses: dict[str, QueuePause] = {}
        self._periodic: dict[str, PeriodicView] = {}
        self._limits: dict[str, QueueLimits] = {}
        self._full_at_ms: dict[tuple[str, str | None], float] = {}
        """When the bucket of a queue, or of a key of it, is full again."""

    def add(self, queue: str, jobs: Sequence[NewJob]) -> tuple[int, ...]:
        """Put the jobs into the queue; return their numbers."""
        raise NotImplementedError

    # ── pauses ───────────────────────────────────────────────────────────────────────────

    def pauses(self) -> tuple[QueuePause, ...]:
        """The queues that are paused now, by name."""
        return tuple(self._pauses[name] for name in sorted(self._pauses) if self.is_paused(name))

    def is_paused(self, queue: str) -> bool:
        """Whether jobs of the queue may not be started now."""
        pause = self._pauses.get(queue)
        return pause is not None and (pause.until_wall_ms is None or pause.until_wall_ms > self.wall_ms())

    def pause(self, queue: str, *, reason: str = "", for_s: float | None = None) -> QueuePause:
        """Start no further job of the queue."""
        self._pauses[queue] = new_pause(queue, self.wall_ms(), reason, for_s)
        return self._pauses[queue]

    def resume(self, queue: str) -> bool:
        """Start jobs of the queue again; False if it was not paused."""
        was_paused = self.is_paused(queue)
        self._pauses.pop(queue, None)
        return was_paused

    # ── limits ───────────────────────────────────────────────────────────────────────────

    def limits(self) -> tuple[QueueLimits, ...]:
        """The queues that have limits, by name."""
        return tuple(self._limits[queue] for queue in sorted(self._limits))

    def set_limits(self, limits: Sequence[QueueLimits]) -> None:
        """Have these limits of queues and no others."""
        before, self._limits = self._limits, {each.queue: each for each in limits}
        for queue in before.keys() | self._limits.keys():
            if self._limits.get(queue) in (None, QueueLimits(queue=queue)):
                self._limits.pop(queue, None)
            if self._limits.get(queue) != before.get(queue):
                self._full_at_ms.pop((queue, None), None)

    def is_held_back(self, queue: str, key: str | None, running: Sequence[str | None]) -> bool:
        """Whether a limit holds a job with this key back while jobs with these keys of its queue run."""
        limits = self._limits.get(queue)
        if limits is None:
            return False
        of_key = key is not None and (
            _reaches(running.count(key), limits.key_concurrency)
            or not self._has_token(queue, key, limits.key_rate)
        )
        return (
            of_key
            or _reaches(len(running), limits.concurrency)
            or not self._has_token(queue, None, limits.rate)
        )

    def take_tokens(self, queue: str, key: str | None) -> None:
        """Count a start against the rates of a queue and of a key."""
        limits = self._limits.get(queue, QueueLimits(queue=queue))
        for of, rate in ((None, limits.rate), (key, limits.key_rate if key is not None else None)):
            if rate is not None:
                full = max(self._full_at(queue, of, rate), self.wall_ms())
                self._full_at_ms[queue, of] = full + rate.period_ms / rate.count

    def _has_token(self, queue: str, key: str | None, rate: Rate | None) -> bool:
        if rate is None:
            return True
        needed = rate.period_ms / rate.count * (rate.count - 1)
        return self._full_at(queue, key, rate) <= self.wall_ms() + needed

    def _full_at(self, queue: str, key: str | None, rate: Rate) -> float:
        """When a bucket is full again; a time that is too late was noted before the clock was set back."""
        full = self._full_at_ms.get((queue, key), 0.0)
        return 0.0 if full > self.wall_ms() + rate.period_ms + CLOCKS_DIFFER_MS else full

    # ── periodic jobs ────────────────────────────────────────────────────────────────────

    def declare_periodic(self, plans: Sequence[PeriodicPlan]) -> None:
        """Have these periodic jobs and no others; a new schedule counts from now on."""
        before, self._periodic = self._periodic, {}
        for plan in plans:
            known = before.get(plan.name)
            if known is None or known.schedule != plan.schedule:
                known = PeriodicView(
                    name=plan.name,
                    queue=plan.queue,
                    schedule=plan.schedule,
                    last_due_wall_ms=self.wall_ms(),
                    next_due_wall_ms=plan.next_due_wall_ms,
                    last_job_id=None if known is None else known.last_job_id,
                    missed=0 if known is None else known.missed,
                )
            self._periodic[plan.name] = replace(known, queue=plan.queue)

    def periodic(self) -> tuple[PeriodicView, ...]:
        """Every periodic job, by name."""
        return tuple(self._periodic[name] for name in sorted(self._periodic))

    def advance_periodic(
        self, before: PeriodicView, after: PeriodicView, jobs: Sequence[NewJob]
    ) -> tuple[int, ...] | None:
        """Note that due times are dealt with, and add the jobs for them; None if another process did."""
        now = self._periodic.get(before.name)
        if now is None or (now.last_due_wall_ms, now.schedule) != (before.last_due_wall_ms, before.schedule):
            return None
        ids = self.add(before.queue, jobs)
        self._periodic[after.name] = replace(after, last_job_id=ids[-1]) if ids else after
        return ids


def _reaches(count: int, limit: int | None) -> bool:
    return limit is not None and count >= limit
