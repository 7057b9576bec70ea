"""A queue whose short waits end.

`queue.SimpleQueue` would do, but for a fault of Python 3.11: whoever finds it empty after its time
is over, between two looks, waits for ever. With waits of a millisecond on a busy machine that
happens. `queue.Queue` must not be put into by a signal handler; this one may.
"""

from __future__ import annotations

import time
from collections import deque
from queue import Empty
from typing import Generic, TypeVar

from .wakeup import Wakeup

T = TypeVar("T")


class Mailbox(Generic[T]):
    """First in, first out, for any number of threads."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._wakeup = Wakeup()

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: T) -> None:
        """Add an item."""
        self._items.append(item)
        self._wakeup.set()

    def get(self, timeout_s: float | None = None) -> T:
        """Take the oldest item, as soon as there is one.

        Raises:
            Empty: there was none in time.
        """
        deadline = float("inf") if timeout_s is None else time.monotonic() + timeout_s
        while True:
            try:
                return self._taken()
            except IndexError:
                pass
            left = deadline - time.monotonic()
            if left <= 0:
                raise Empty
            self._wakeup.wait(left)

    def _taken(self) -> T:
        item = self._items.popleft()
        if self._items:
            self._wakeup.set()  # one ring may have stood for several items, and others may wait
        return item
