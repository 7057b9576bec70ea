"""Pure: every due time of a schedule is on record, once and in time, and no two runs overlap."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from ...spec.policies.schedule import SchedulePolicy
from ..scenarios.history import SupervisorStarted
from ..scenarios.known_state import Facts
from ..scenarios.run_entries import RunRecorded
from .promise import Deadlines, Promise

_UNITS = {"s": 1000, "m": 60_000, "h": 3_600_000}
NOTICED_S = 61.0
"""How much later a due time may be recorded after the host slept: the clock is looked at every minute."""


class Schedules(Promise):
    """For schedules by `every`, in one of these units, whose clock is not set."""

    rule: ClassVar[str] = "schedules are kept"

    def __init__(self, facts: Facts, deadlines: Deadlines) -> None:
        super().__init__(facts, deadlines)
        self._periods = {
            id_: int(worker.spec.schedule.every[:-1]) * _UNITS[worker.spec.schedule.every[-1]]
            for id_, worker in facts.workers.items()
            if worker.spec.schedule is not None and worker.spec.schedule.every[:-1].isdecimal()
        }
        self._open: dict[str, set[int]] = {}
        self._last_due: dict[str, int] = {}

    def hears(self) -> Mapping[type, Callable[[Any], Iterator[str] | None]]:
        """Runs, and supervisors; nothing if no worker is scheduled."""
        if not self._periods:
            return {}
        return {RunRecorded: self._recorded, SupervisorStarted: self._started}

    def _started(self, entry: SupervisorStarted) -> None:
        self._open.clear()

    def _recorded(self, entry: RunRecorded) -> Iterator[str]:
        yield from self._overlap(entry)
        period = self._periods.get(entry.worker)
        if period is None or entry.trigger != "clock" or self.facts.clock_range != (0.0, 0.0):
            return
        yield from self._gap(entry, period)
        self._expect_next(entry, period)

    def _overlap(self, entry: RunRecorded) -> Iterator[str]:
        """A run begins only when no other is running."""
        running = self._open.setdefault(entry.worker, set())
        if entry.state != "running":
            running.discard(entry.number)
            if running and self._policy(entry.worker).overlap == "replace":
                self._must_end(entry.worker, min(running), entry.at, "is replaced")
            return
        if running - {entry.number}:
            yield f"run {entry.number} of {entry.worker} begins while run {min(running)} is running"
        timeout_s = self._policy(entry.worker).timeout_s
        if entry.number not in running and timeout_s is not None:
            self._must_end(entry.worker, entry.number, entry.at + timeout_s, "takes too long")
        running.add(entry.number)

    def _policy(self, worker: str) -> SchedulePolicy:
        policy = self.facts.workers[worker].spec.schedule
        assert policy is not None
        return policy

    def _must_end(self, worker: str, number: int, at: float, why: str) -> None:
        """A run that takes too long, or is replaced, is ended in the time of its stop policy."""
        stop_s = self.facts.workers[worker].spec.stop.total_s

        def lasts() -> str | None:
            if self.facts.shut_down_at is not None or number not in self._open.get(worker, ()):
                return None
            if self.facts.resumed_at > at:  # the host slept when it was to end
                self._must_end(worker, number, self.facts.resumed_at, why)
                return None
            return f"run {number} of {worker} {why}, and is not ended"

        self.by((worker, number, why), at + stop_s, lasts)

    def _gap(self, entry: RunRecorded, period: int) -> Iterator[str]:
        """Each record follows the one before it without a due time between them, and counts rightly."""
        if entry.due_ms % period or entry.last_due_ms % period:
            yield f"{entry.worker} is not due at {entry.due_ms}"
        if entry.times != (entry.last_due_ms - entry.due_ms) // period + 1:
            yield f"run {entry.number} of {entry.worker} stands for {entry.times} due times, which is wrong"
        known = self._last_due.get(entry.worker)
        if known is not None and entry.due_ms > known + period:
            yield f"{entry.worker} was due at {known + period}, of which there is no record"
        self._last_due[entry.worker] = max(known or 0, entry.last_due_ms)

    def _expect_next(self, entry: RunRecorded, period: int) -> None:
        due = entry.at + ((entry.wall_ms // period + 1) * period - entry.wall_ms) / 1000
        known = self._last_due[entry.worker]
        self.by(entry.worker, due + NOTICED_S, lambda: self._unnoticed(entry.worker, known + period))

    def _unnoticed(self, worker: str, due_ms: int) -> str | None:
        if self.facts.shut_down_at is not None or self.facts.clock_range != (0.0, 0.0):
            return None
        return f"{worker} was due at {due_ms}, and nothing was recorded"
