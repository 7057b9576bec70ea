"""What other threads want of the thread of an executor: calls, and an eventfd that wakes it."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress

Order = Callable[[], None]


class OrderQueue:
    """Orders that any thread may post, and one thread takes."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._posted: deque[Order] = deque()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._is_woken = False
        self._waking = threading.Lock()

    def fileno(self) -> int:
        """Readable while there are orders."""
        return self._wake

    @property
    def is_ours(self) -> bool:
        """Whether this is the process that made it, and not a fork of it."""
        return os.getpid() == self._process

    def post(self, order: Order) -> None:
        """Add an order; does nothing in a fork."""
        if not self.is_ours:
            return
        self._posted.append(order)
        if self._is_woken:
            return
        # Under a lock: once it is closed, its number may belong to a file of the host.
        with self._waking, suppress(OSError):
            if self._wake != -1 and not self._is_woken:
                os.eventfd_write(self._wake, 1)
                self._is_woken = True

    def take(self) -> Iterator[Order]:
        """The orders, also those that arrive meanwhile."""
        if self._is_woken:
            # Before the orders are taken: one that is posted after the last was taken wakes the thread again.
            with self._waking:
                os.eventfd_read(self._wake)
                self._is_woken = False
        while self._posted:
            yield self._posted.popleft()

    def close(self) -> None:
        """Wake no more threads."""
        with self._waking:
            os.close(self._wake)
            self._wake = -1
