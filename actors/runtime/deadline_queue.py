"""Deadlines of many workers on one timer.

A deadline that was added and is no longer wanted stays in the queue until it is the first one, so
moving a deadline to later costs no timer.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

from ..ports import Receiver, Runtime, Timer

Deadline = tuple[float, str, int]
"""(monotonic time, component_id, generation)"""


class DeadlineQueue:
    """Sends its owner one message at the first deadline that is still wanted."""

    def __init__(
        self,
        runtime: Runtime,
        owner: Receiver,
        message: Callable[[float], object],
        is_wanted: Callable[[Deadline], bool],
    ) -> None:
        """Begin with an empty queue.

        Args:
            runtime: the clock and the timers.
            owner: who gets the message.
            message: makes the message for a deadline; the owner passes the time in it to `take_due`.
            is_wanted: whether a queued deadline still holds.
        """
        self._runtime = runtime
        self._owner = owner
        self._message = message
        self._is_wanted = is_wanted
        self._queue: list[Deadline] = []
        self._timer: Timer | None = None
        self._timer_due = float("inf")

    def add(self, deadline: Deadline) -> None:
        """Queue a deadline."""
        heapq.heappush(self._queue, deadline)
        self.arm()

    def is_next(self, due: float) -> bool:
        """Whether the message for this time is the one that is waited for.

        The timer is then used up, and none is set before `arm_again`: one for a deadline that the owner is
        about to take would be delivered late, as if the owner had been suspended once more.
        """
        if due != self._timer_due:
            return False
        self._timer, self._timer_due = None, float("-inf")
        return True

    def take_due(self, now: float) -> Iterator[Deadline]:
        """Remove and return the deadlines that are over and still wanted, the earliest first."""
        while self._queue and self._queue[0][0] <= now:
            deadline = heapq.heappop(self._queue)
            if self._is_wanted(deadline):
                yield deadline

    def arm(self) -> None:
        """Set the timer for the first deadline that is wanted, unless it is set for an earlier time."""
        queue = self._queue
        while queue and not self._is_wanted(queue[0]):
            heapq.heappop(queue)
        if not queue or queue[0][0] >= self._timer_due:
            return
        if self._timer is not None:
            self._timer.cancel()
        due = self._timer_due = queue[0][0]
        delay = max(0.0, due - self._runtime.clock.monotonic())
        self._timer = self._runtime.timers.after(delay, self._owner, self._message(due))

    def arm_again(self) -> None:
        """The owner has taken what was due: set the timer for the first of the others."""
        self._timer_due = float("inf")
        self.arm()

    def clear(self) -> None:
        """Drop all deadlines and the timer."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_due = None, float("inf")
        self._queue.clear()
