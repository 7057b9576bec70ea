"""A queue for threads whose timeouts are reliable.

`queue.SimpleQueue.get` of Python 3.11 may block forever if its timeout expires between two checks, which
happens with waits of a millisecond on a busy machine. `queue.Queue` must not be used in a signal handler;
this one may.
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
        """Take the oldest item, and wait for one if there is none.

        Raises:
            Empty: no item arrived in time.
        """
        deadline = float("inf") if timeout_s is None else time.monotonic() + timeout_s
        while True:
            try:
                return self._pop()
            except IndexError:
                pass
            left = deadline - time.monotonic()
            if left <= 0:
                raise Empty
            self._wakeup.wait(left)

    def _pop(self) -> T:
        item = self._items.popleft()
        if self._items:
            self._wakeup.set()  # one wakeup may stand for several items, and other threads may wait
        return item
