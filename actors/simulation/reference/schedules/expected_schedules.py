"""Pure: every due time of a schedule is on record, once and in time, also after the clock was set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from ...scenarios.history import HostResumed, Moved, SupervisorStarted
from ...scenarios.known_state import Facts
from ...scenarios.run_entries import RunRecorded
from ..promise import EXACT_S, Deadlines, Promise
from .period import period_ms

LOOKS_S = 60.0
"""How long a change of the clock may go unnoticed."""
LATE_MS = 120_000
"""A due time that is noticed later than this is missed."""
ROUNDED = 1e-5
REPEATED_MS = 3 * 3_600_000
"""Due times are recorded again if the clock is set back by more than this."""


class ExpectedSchedules(Promise):
    """For schedules by `every`, in one unit."""

    rule: ClassVar[str] = "schedules are kept"

    def __init__(self, facts: Facts, deadlines: Deadlines) -> None:
        super().__init__(facts, deadlines)
        self._periods = {
            id_: period
            for id_, worker in facts.workers.items()
            if worker.spec.schedule is not None and (period := period_ms(worker.spec.schedule)) is not None
        }
        self._last_due: dict[str, int] = {}
        self._noticed_by: dict[str, float] = {}
        """By when it is noticed that the clock was set far back."""
        self._clock_ms = 0
        """What the wall clock shows at the beginning of the run, as it is set now."""
        self._rounded_s = 0.0
        """How exactly that is known since the clock was set."""

    def hears(self) -> Mapping[type, Callable[[Any], Iterator[str] | None]]:
        """Runs, supervisors, and the setting of the clock; nothing if no worker is scheduled."""
        if not self._periods:
            return {}
        return {
            RunRecorded: self._recorded,
            SupervisorStarted: self._started,
            Moved: self._moved,
            HostResumed: self._resumed,
        }

    def _resumed(self, entry: HostResumed) -> None:
        """What was due while the host slept does not count if the clock was set far back unnoticed."""
        for worker in self._periods:
            if entry.at - entry.slept_s < self._noticed_by.get(worker, -1.0) < entry.at:
                self._last_due[worker] = max(self._last_due[worker], self._wall_ms(entry.at))
                self._noticed_by[worker] = entry.at + EXACT_S
                self._expect_next(worker, entry.at, self._rounded_s)

    def _started(self, entry: SupervisorStarted) -> None:
        self._clock_ms = entry.wall_ms - round(entry.at * 1000)
        for worker in self._periods:
            self._last_due.setdefault(worker, entry.wall_ms)  # it counts from its first start
            if self.facts.clock_range != (0.0, 0.0):  # what it remembers may be in the future
                self._last_due[worker] = max(entry.wall_ms, self._until(worker, entry.at))
            self._expect_next(worker, entry.at)

    def _wall_ms(self, at: float) -> int:
        return self._clock_ms + round(at * 1000)

    def _moved(self, entry: Moved) -> None:
        if entry.word != "set_clock" or not self.facts.is_up:
            return  # without a supervisor no move is made
        by_s = float(entry.what.split()[-1])
        self._clock_ms += round(by_s * 1000)
        self._rounded_s = abs(by_s) * ROUNDED
        for worker in self._periods:  # the number in the entry is rounded
            self._expect_next(worker, entry.at, LOOKS_S + self._rounded_s)

    def _recorded(self, entry: RunRecorded) -> Iterator[str]:
        self._clock_ms = entry.wall_ms - round(entry.at * 1000)
        period = self._periods.get(entry.worker)
        if period is None or entry.trigger != "clock":
            return
        yield from self._gap(entry, period)
        if entry.state == "waiting" and entry.wall_ms - entry.due_ms > LATE_MS:
            yield f"run {entry.number} of {entry.worker} is executed, which was due long ago"
        self._expect_next(entry.worker, entry.at)

    def _gap(self, entry: RunRecorded, period: int) -> Iterator[str]:
        """Each record follows the one before it without a due time between them, and counts rightly."""
        if entry.due_ms % period or entry.last_due_ms % period:
            yield f"{entry.worker} is not due at {entry.due_ms}"
        following = (self._last_due[entry.worker] // period + 1) * period
        if self.facts.clock_range == (0.0, 0.0):
            if entry.times != (entry.last_due_ms - entry.due_ms) // period + 1:
                yield f"run {entry.number} of {entry.worker} stands for {entry.times} due times"
            if entry.due_ms > following:
                yield f"{entry.worker} was due at {following}, and that is not on record"
        self._last_due[entry.worker] = max(self._until(entry.worker, entry.at), entry.last_due_ms)

    def _until(self, worker: str, at: float) -> int:
        """Up to when due times are recorded, or no longer count."""
        known, now = self._last_due[worker], self._wall_ms(at)
        return known if known - now <= REPEATED_MS else now

    def _expect_next(self, worker: str, at: float, more_s: float = 0.0) -> None:
        period, until, now = self._periods[worker], self._until(worker, at), self._wall_ms(at)
        if until != self._last_due[worker] or (more_s and at < self._noticed_by.get(worker, -1.0)):
            # What is due before it is noticed that the clock was set back does not count, either.
            until = self._last_due[worker] = max(until, now + round(more_s * 1000))
            self._noticed_by[worker] = at + LOOKS_S
        due = (until // period + 1) * period
        if more_s:  # the first due time may pass before that is noticed
            due += period
        in_s = max(0, due - now) / 1000
        self.by(worker, at + in_s + more_s, lambda: self._unnoticed(worker, due))

    def _unnoticed(self, worker: str, due_ms: int) -> str | None:
        if self.facts.shut_down_at is not None:
            return None
        return f"{worker} was due at {due_ms}, and nothing was recorded"
