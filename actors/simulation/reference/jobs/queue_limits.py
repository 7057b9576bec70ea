"""Pure: the limits of queues, recomputed from the claims.

A rate of `n` in a period gives a token every `period / n`, up to `n` of them; every start takes one. After
the clock or the limits were changed there may be fewer tokens than are counted here, never more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ...scenarios.jobs.job_entries import JobClaimed, QueueLimited
from .known_job import KnownJob

NEARLY = 1e-3
"""Fractions of a token that are not worth a dispute."""
BACK_MS = 60_000
"""How long a clock that was set back may hold tokens back."""


@dataclass(slots=True)
class ExpectedTokens:
    """The tokens of a queue, or of one key of it."""

    most: int
    per_ms: int
    left: float = field(init=False)
    at_ms: int
    sure_from_ms: int
    """From then on there are exactly as many as are counted."""

    def __post_init__(self) -> None:
        self.left = self.most

    def at(self, now_ms: int) -> float:
        """How many there are at this time."""
        if now_ms < self.at_ms:  # the clock was set back
            self.left, self.sure_from_ms = self.most, now_ms + self.per_ms + BACK_MS
        else:
            self.left = min(self.most, self.left + (now_ms - self.at_ms) * self.most / self.per_ms)
        self.at_ms = now_ms
        return self.left


class ExpectedLimits:
    """The limits of every queue, and what is left of them."""

    def __init__(self) -> None:
        self._limits: dict[str, QueueLimited] = {}
        self._tokens: dict[tuple[str, str | None], ExpectedTokens] = {}
        self._unsure_ms: dict[str, int] = {}
        """For how long tokens may be missing after a change."""

    def changed(self, entry: QueueLimited) -> None:
        """A queue has other limits; tokens that were taken before may be missing for a period."""
        before = self._limits.get(entry.queue)
        self._limits[entry.queue] = entry
        self._unsure_ms[entry.queue] = max(entry.per_ms, 0 if before is None else before.per_ms)
        for key in [key for key in self._tokens if key[0] == entry.queue]:
            del self._tokens[key]

    def broken(self, job: KnownJob, entry: JobClaimed, running: Iterable[KnownJob]) -> Iterator[str]:
        """Which limits a claim exceeds; `running` are the jobs of its queue that ran before."""
        limits = self._limits.get(job.queue)
        if limits is None:
            return
        keys = [each.key for each in running]
        who = f"job {job.number} is claimed by {entry.worker} #{entry.generation} although"
        if limits.concurrency is not None and len(keys) >= limits.concurrency:
            yield f"{who} {len(keys)} of {limits.concurrency} jobs of {job.queue} run"
        if job.key is not None and self._is_busy(limits, job.key, keys):
            yield f"{who} {keys.count(job.key)} of {limits.key_concurrency} jobs of its key run"
        for key, rate in self._rates(limits, job.key):
            tokens = self._bucket(limits, key, rate, entry.wall_ms)
            if tokens.at(entry.wall_ms) < 1 - NEARLY:
                yield f"{who} {rate} jobs of {job.queue if key is None else key} began in this time"
            tokens.left = max(0.0, tokens.left - 1)

    def holds_back(self, job: KnownJob, wall_ms: int, running: Iterable[KnownJob]) -> bool:
        """Whether the limits for its key may hold a job back."""
        limits = self._limits.get(job.queue)
        if limits is None or job.key is None:
            return False
        if self._is_busy(limits, job.key, [each.key for each in running]):
            return True
        if limits.key_rate is None:
            return False
        tokens = self._bucket(limits, job.key, limits.key_rate, wall_ms)
        return tokens.at(wall_ms) < 1 + NEARLY or wall_ms < tokens.sure_from_ms

    def _is_busy(self, limits: QueueLimited, key: str, running: list[str | None]) -> bool:
        return limits.key_concurrency is not None and running.count(key) >= limits.key_concurrency

    def _rates(self, limits: QueueLimited, key: str | None) -> Iterator[tuple[str | None, int]]:
        if limits.rate is not None:
            yield None, limits.rate
        if limits.key_rate is not None and key is not None:
            yield key, limits.key_rate

    def _bucket(self, limits: QueueLimited, key: str | None, rate: int, wall_ms: int) -> ExpectedTokens:
        sure_from = wall_ms + self._unsure_ms[limits.queue]
        new = ExpectedTokens(rate, limits.per_ms, wall_ms, sure_from)
        return self._tokens.setdefault((limits.queue, key), new)
