"""The timers of the workers under supervision: one of each kind for a worker, one of saves for all.

Belongs to the Supervisor's workers and runs in the Supervisor, which receives a message when one is due.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from ...messages.internal.to_supervisor import BackoffElapsed, HealthSustained, RunOvertime, SaveOverdue
from ...ports import Receiver, Runtime, Timer

TimerMessage = BackoffElapsed | HealthSustained | RunOvertime


class WorkerTimers:
    """What each worker waits for: the end of its delay, lasting health, and that its death is kept."""

    def __init__(self, runtime: Runtime, supervisor: Receiver) -> None:
        self._runtime = runtime
        self._supervisor = supervisor
        self._timers: dict[tuple[str, type[TimerMessage]], Timer] = {}
        self._sustained: dict[str, tuple[int, float]] = {}
        """By worker: the generation, and when its health will have lasted long enough."""
        self._unsaved: list[tuple[float, str, int]] = []
        """Deaths that wait for the store, the first to be given up first."""
        self._save_timer: Timer | None = None

    def schedule(self, component_id: str, delay_ms: int, message: TimerMessage) -> None:
        """Send the Supervisor this message after a delay, in place of an earlier one of its kind."""
        key = (component_id, type(message))
        earlier = self._timers.pop(key, None)
        if earlier is not None:
            earlier.cancel()
        self._timers[key] = self._runtime.timers.after(delay_ms / 1000, self._supervisor, message)
        if isinstance(message, HealthSustained):
            due = self._runtime.clock.monotonic() + delay_ms / 1000
            self._sustained[component_id] = message.generation, due

    def cancel(self, component_id: str) -> None:
        """Cancel the timers of this worker; the time that its run may take continues."""
        for kind in (BackoffElapsed, HealthSustained):
            timer = self._timers.pop((component_id, kind), None)
            if timer is not None:
                timer.cancel()
        self._sustained.pop(component_id, None)

    def sustained_at(self) -> dict[str, tuple[int, float]]:
        """By worker: the generation, and when its health will have lasted, or has lasted, long enough."""
        return dict(self._sustained)

    def take_over(self, sustained: Mapping[str, tuple[int, float]]) -> None:
        """Go on with the waits that the former program had begun."""
        now = self._runtime.clock.monotonic()
        for id_, (generation, due) in sustained.items():
            self.schedule(id_, round(max(0.0, due - now) * 1000), HealthSustained(id_, generation))

    def forget_all(self) -> None:
        """Cancel all timers."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._sustained.clear()
        self._unsaved.clear()
        self._arm_save_timer()

    def await_save(self, component_id: str, generation: int, delay_ms: int) -> None:
        """Have the wait for the store end at some time.

        One timer serves all workers, since nearly always the store answers long before: a timer
        for each death would cost every restart a wake-up.
        """
        due = self._runtime.clock.monotonic() + delay_ms / 1000
        heapq.heappush(self._unsaved, (due, component_id, generation))
        if self._save_timer is None or self._unsaved[0][0] == due:
            self._arm_save_timer()

    def overdue_saves(self) -> list[tuple[str, int]]:
        """The deaths, as (component_id, generation), that no longer have to wait for the store."""
        now = self._runtime.clock.monotonic()
        overdue = []
        while self._unsaved and self._unsaved[0][0] <= now:
            _, component_id, generation = heapq.heappop(self._unsaved)
            overdue.append((component_id, generation))
        self._arm_save_timer()
        return overdue

    def _arm_save_timer(self) -> None:
        if self._save_timer is not None:
            self._save_timer.cancel()
            self._save_timer = None
        if self._unsaved:
            delay = max(0.0, self._unsaved[0][0] - self._runtime.clock.monotonic())
            self._save_timer = self._runtime.timers.after(delay, self._supervisor, SaveOverdue())
