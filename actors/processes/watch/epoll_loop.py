"""One thread over one epoll: it handles readable descriptors and makes the calls that others post.

While nothing happens it does not wake.
"""

from __future__ import annotations

import heapq
import itertools
import os
import select
import threading
import time
from collections import deque
from contextlib import suppress

from ...runtime.lanes import Call, attempt

EVENTS_AT_ONCE = 64
CALLS_AT_ONCE = 256
"""How many calls are made before the next poll: many calls must not delay a death."""


class EpollLoop:
    """One thread that waits for descriptors and makes calls.

    Any thread may call `post` and `join`; everything else is for calls that run on this thread.
    """

    def __init__(self, name: str, *, hang_up_pause_s: float = 0.0) -> None:
        """Start the thread.

        Args:
            name: of the thread.
            hang_up_pause_s: how long it waits before it handles descriptors whose other ends were closed, if
                there is nothing else to do.
        """
        self._hang_up_pause_s = hang_up_pause_s
        self._calls: deque[Call] = deque()
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
        self._awake_since: float | None = None
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name=f"rekindle-{name}", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            self._close()
            raise

    def post(self, call: Call) -> None:
        """Have a call made, after all that were posted before; after the end of the thread, never."""
        self._calls.append(call)
        # In this order: before the thread sleeps it sets `_is_asleep`, then checks for calls.
        if self._is_asleep:
            self._wake_up()

    @property
    def busy_s(self) -> float:
        """How long this round has lasted; 0 while the thread waits."""
        since = self._awake_since
        return 0.0 if since is None else time.monotonic() - since

    def join(self, timeout_s: float) -> bool:
        """Wait for the end of the thread; whether it ended in time."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def end(self) -> None:
        """End the thread after this round."""
        self._is_over = True

    def watch(
        self, descriptor: int, handler: Call, *, urgent: bool = False, events: int = select.EPOLLIN
    ) -> None:
        """Call the handler whenever the descriptor is readable; urgent ones are handled first."""
        self._epoll.register(descriptor, events)
        self._handlers[descriptor] = handler
        if urgent:
            self._urgent.add(descriptor)

    def watches(self, descriptor: int) -> bool:
        """Whether the descriptor has a handler."""
        return descriptor in self._handlers

    def unwatch(self, descriptor: int) -> None:
        """Stop watching a descriptor, if it is watched. Call this before the descriptor is closed."""
        if self._handlers.pop(descriptor, None) is not None:
            self._urgent.discard(descriptor)
            self._epoll.unregister(descriptor)

    def after(self, delay_s: float, call: Call) -> None:
        """Have a call made once the delay has passed."""
        heapq.heappush(self._later, (time.monotonic() + delay_s, next(self._order), call))

    # ── the thread ───────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        try:
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
        """One round: first all readable descriptors, then the calls.

        Never mixed: a call may open a descriptor with the number of one that a handler has just closed,
        and a pending report about the closed one would be taken for the new one.
        """
        self._handle(self._polled())
        now = time.monotonic()
        for _ in range(CALLS_AT_ONCE):
            if not self._calls:
                break
            attempt(self._calls.popleft())
        # Only what was due at the last poll: by now the kernel may have more to report.
        while self._later and self._later[0][0] <= now:
            attempt(heapq.heappop(self._later)[2])

    def _handle(self, reported: list[int]) -> None:
        """Handle readable descriptors, the urgent ones first."""
        if len(reported) > 1:
            reported.sort(key=lambda descriptor: descriptor not in self._urgent)
        for descriptor in reported:
            handler = self._handlers.get(descriptor)
            if handler is not None:
                attempt(handler)

    def _polled(self) -> list[int]:
        self._is_asleep, self._awake_since = True, None
        found = self._epoll.poll(self._timeout_s(), EVENTS_AT_ONCE)
        if self._hang_up_pause_s and found and all(events == select.EPOLLHUP for _, events in found):
            time.sleep(self._hang_up_pause_s)
        reported = [descriptor for descriptor, _ in found]
        self._is_asleep, self._awake_since = False, time.monotonic()
        if self._wake in reported:
            reported.remove(self._wake)
            os.eventfd_read(self._wake)
        return reported

    def _timeout_s(self) -> float:
        if self._calls:
            return 0.0
        return max(0.0, self._later[0][0] - time.monotonic()) if self._later else -1.0

    def _wake_up(self) -> None:
        # Under a lock: once it is closed, its number may belong to a file of the host.
        with self._waking, suppress(OSError):
            if self._wake != -1:
                os.eventfd_write(self._wake, 1)
