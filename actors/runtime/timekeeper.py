"""The real timers: one thread, one heap, monotonic time."""

from __future__ import annotations

import heapq
import itertools
import threading
from contextlib import suppress

import pykka
from loguru import logger

from ..ports import Clock, Receiver
from .wakeup import LONGEST_WAIT_S

PRUNE_ABOVE = 1000
"""Cancelled timers are removed above this many timers plus twice the number left by the last removal."""


class HeapTimer:
    """A message that waits in the heap."""

    __slots__ = ("message", "receiver")

    def __init__(self, receiver: Receiver, message: object) -> None:
        self.receiver: Receiver | None = receiver
        self.message: object = message

    def cancel(self) -> None:
        """Drop the message; its entry leaves the heap when it is due, or at the next pruning."""
        self.receiver = self.message = None


class Timekeeper:
    """Delivers scheduled messages. Does not wake up while no timer is set."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, HeapTimer]] = []
        self._order = itertools.count()
        self._prune_at = PRUNE_ABOVE
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="rekindle-timekeeper", daemon=True)
        self._thread.start()

    def after(self, delay_s: float, receiver: Receiver, message: object) -> HeapTimer:
        """Send the message to the receiver after the delay."""
        timer = HeapTimer(receiver, message)
        due = self._clock.monotonic() + max(0.0, delay_s)
        with self._changed:
            heapq.heappush(self._heap, (due, next(self._order), timer))
            if len(self._heap) > self._prune_at:
                self._prune()
            if self._heap[0][2] is timer:
                self._changed.notify()
        return timer

    def _prune(self) -> None:
        """Remove cancelled timers: some would be due only in days."""
        self._heap = [entry for entry in self._heap if entry[2].receiver is not None]
        heapq.heapify(self._heap)
        self._prune_at = 2 * len(self._heap) + PRUNE_ABOVE

    def close(self, timeout_s: float) -> None:
        """End the thread; waiting messages are never delivered."""
        with self._changed:
            self._closed = True
            self._heap.clear()
            self._changed.notify()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while (timer := self._next()) is not None:
            self._deliver(timer)

    def _next(self) -> HeapTimer | None:
        """Wait for the next timer that is due; None ends the thread."""
        with self._changed:
            while not self._closed:
                # A cancelled timer at the top would cause a needless wake-up.
                while self._heap and self._heap[0][2].receiver is None:
                    heapq.heappop(self._heap)
                if not self._heap:
                    self._changed.wait()
                    continue
                wait = self._heap[0][0] - self._clock.monotonic()
                if wait <= 0:
                    return heapq.heappop(self._heap)[2]
                self._changed.wait(min(wait, LONGEST_WAIT_S))
            return None

    def _deliver(self, timer: HeapTimer) -> None:
        receiver, message = timer.receiver, timer.message
        if receiver is None:
            return
        try:
            receiver.tell(message)
        except pykka.ActorDeadError:
            pass
        except Exception as error:  # noqa: BLE001
            with suppress(Exception):  # the log is the host's, and may raise as well
                logger.opt(exception=error).error("timers: a message could not be delivered")
