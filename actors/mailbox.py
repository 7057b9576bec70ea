"""A queue whose short waits end.

`queue.SimpleQueue` would do, but for a fault of Python 3.11: whoever finds it empty after its time
is over, between two looks, waits for ever. With waits of a millisecond on a busy machine that
happens. `queue.Queue` must not be put into by a signal handler; this one may.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from contextlib import suppress
from queue import Empty
from typing import Generic, TypeVar

T = TypeVar("T")

LONGEST_WAIT_S = 86_400.0
"""The platform refuses to wait for some centuries; whoever is woken early waits again."""


class Mailbox(Generic[T]):
    """First in, first out, for any number of threads."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._bell = threading.Lock()
        """Held, but for a moment after it was rung."""
        self._bell.acquire()

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: T) -> None:
        """Add an item."""
        self._items.append(item)
        self._ring()

    def get(self, timeout_s: float | None = None) -> T:
        """Take the oldest item, as soon as there is one.

        Raises:
            Empty: there was none in time.
        """
        deadline = float("inf") if timeout_s is None else time.monotonic() + timeout_s
        while True:
            with suppress(IndexError):
                return self._taken()
            left = deadline - time.monotonic()
            if left <= 0:
                raise Empty
            self._bell.acquire(timeout=min(left, LONGEST_WAIT_S))

    def _taken(self) -> T:
        item = self._items.popleft()
        if self._items:
            self._ring()  # one ring may have stood for several items, and others may wait
        return item

    def _ring(self) -> None:
        with suppress(RuntimeError):  # it was rung already
            self._bell.release()
