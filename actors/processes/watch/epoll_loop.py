"""One thread over one epoll: what the kernel reports of descriptors, and what others have it do, in turn.

While nothing happens it does not wake. It helps the lane that it posts to, if there is one.
"""

from __future__ import annotations

import heapq
import itertools
import os
import select
import threading
import time
from collections import deque
from contextlib import nullcontext, suppress

from ...runtime.lanes import Call, Lane, attempt

EVENTS_AT_ONCE = 64
CALLS_AT_ONCE = 256
"""So many are made before the kernel is asked again: a crowd of calls must not hide a death."""

UNHELPED_S = 0.002
"""So long may what was posted to the lane wait for the rest of what the kernel reported."""


class EpollLoop:
    """One thread that waits for descriptors and makes calls.

    `post` and `join` are for everybody, all else is for what runs on it.
    """

    def __init__(self, name: str, helped: Lane | None = None) -> None:
        self._helped = helped
        self._calls: deque[Call] = deque()
        self._deferred: deque[Call] = deque()
        self._later: list[tuple[float, int, Call]] = []
        self._order = itertools.count()
        self._handlers: dict[int, Call] = {}
        self._urgent: set[int] = set()
        self._epoll = select.epoll()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._epoll.register(self._wake, select.EPOLLIN)
        # A signal handler may post while the thread that it interrupts does.
        self._waking = threading.RLock()
        self._is_asleep = False
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name=f"rekindle-{name}", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            self._close()
            raise

    def post(self, call: Call) -> None:
        """Have a call made, after all that were posted before; once it has ended, never."""
        self._calls.append(call)
        # In this order: whoever is about to sleep says so first, and looks for calls then.
        if self._is_asleep:
            self._wake_up()

    def join(self, timeout_s: float) -> bool:
        """Wait for its end; whether that came in time."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def end(self) -> None:
        """End the thread, now that nothing is to be watched any more."""
        self._is_over = True

    def watch(self, descriptor: int, handler: Call, *, urgent: bool = False) -> None:
        """Have a call made whenever there is something to read; an urgent one before all others."""
        self._epoll.register(descriptor, select.EPOLLIN)
        self._handlers[descriptor] = handler
        if urgent:
            self._urgent.add(descriptor)

    def watches(self, descriptor: int) -> bool:
        """Whether somebody hears of this descriptor."""
        return descriptor in self._handlers

    def unwatch(self, descriptor: int) -> None:
        """Do not watch a descriptor any longer, if it is watched; before it is closed."""
        if self._handlers.pop(descriptor, None) is not None:
            self._urgent.discard(descriptor)
            self._epoll.unregister(descriptor)

    def defer(self, call: Call) -> None:
        """Have a call made that nobody waits for, once all else is done that is to be done now."""
        self._deferred.append(call)

    def after(self, delay_s: float, call: Call) -> None:
        """Have a call made once the delay has passed."""
        heapq.heappush(self._later, (time.monotonic() + delay_s, next(self._order), call))

    # ── the thread ───────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        try:
            with nullcontext() if self._helped is None else self._helped.helper():
                while not self._is_over:
                    self._run_once()
        finally:
            self._close()

    def _close(self) -> None:
        self._epoll.close()
        with self._waking:
            os.close(self._wake)
            self._wake = -1

    def _run_once(self) -> None:
        """One round: what the kernel reports, then what is to be done.

        In this order, and never mixed: a call may open a descriptor that gets the number of one
        that a handler has just closed, and would be taken for it.
        """
        self._handle(self._polled())
        now = time.monotonic()
        for _ in range(CALLS_AT_ONCE):
            if not self._calls:
                break
            attempt(self._calls.popleft())
        # Only what was due when the kernel was asked: by now it may have more to report.
        while self._later and self._later[0][0] <= now:
            attempt(heapq.heappop(self._later)[2])
        self._help()
        while self._deferred:
            attempt(self._deferred.popleft())
        self._help()

    def _handle(self, reported: list[int]) -> None:
        """Handle what the kernel reports, in its order but for what is urgent."""
        help_at = time.monotonic() + UNHELPED_S
        if len(reported) > 1:
            reported.sort(key=self._can_wait)
        for descriptor in reported:
            handler = self._handlers.get(descriptor)
            if handler is not None:
                attempt(handler)
                if time.monotonic() > help_at:
                    self._help()
                    help_at = time.monotonic() + UNHELPED_S
        self._help()

    def _can_wait(self, descriptor: int) -> bool:
        return descriptor not in self._urgent

    def _help(self) -> None:
        if self._helped is not None:
            self._helped.help()

    def _polled(self) -> list[int]:
        self._is_asleep = True
        reported = [descriptor for descriptor, _ in self._epoll.poll(self._timeout_s(), EVENTS_AT_ONCE)]
        self._is_asleep = False
        if self._wake in reported:
            reported.remove(self._wake)
            os.eventfd_read(self._wake)
        return reported

    def _timeout_s(self) -> float:
        if self._calls:
            return 0.0
        return max(0.0, self._later[0][0] - time.monotonic()) if self._later else -1.0

    def _wake_up(self) -> None:
        # Under a lock: once it is closed, its number may stand for a file of the host.
        with self._waking, suppress(OSError):
            if self._wake != -1:
                os.eventfd_write(self._wake, 1)
