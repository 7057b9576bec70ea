"""Events that have not been delivered: told by the Broker, taken by the gateway's own thread.

It holds so many and no more. In core mode the oldest is dropped then, and counted; with
JetStream it is merely let go, since the store has it, and is read back from there.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

from ...facts.records import EventRecord


class Backlog:
    """What waits. Safe to use from two threads; nobody ever waits here for anything but a lock."""

    def __init__(self, most: int, *, delivered: int, newest: int) -> None:
        """Begin behind the last event that was delivered; what came after it is in the store."""
        self._most = most
        self._lock = threading.Lock()
        self._events: deque[EventRecord] = deque()
        self._floor = newest
        """Up to this number nothing is here any more."""
        self._newest = newest
        self._delivered = delivered
        self._evicted = 0

    @property
    def delivered(self) -> int:
        """The last event that was delivered, with all before it."""
        return self._delivered

    @property
    def waiting(self) -> int:
        """How many events have not been delivered; numbers grow by one."""
        return max(0, self._newest - self._delivered)

    @property
    def dropped(self) -> int:
        """How many were let go before they were delivered."""
        return self._evicted

    def add(self, record: EventRecord) -> None:
        """Take one more; the oldest goes if there is no room."""
        with self._lock:
            self._events.append(record)
            self._newest = max(self._newest, record.id)
            if len(self._events) > self._most:
                self._evict()

    def next(self, limit: int) -> Sequence[EventRecord] | None:
        """The next events; None if some of them were let go, and must come from elsewhere."""
        with self._lock:
            if self._floor > self._delivered:
                return None
            waiting = (record for record in self._events if record.id > self._delivered)
            return [record for record, _ in zip(waiting, range(limit), strict=False)]

    def settle(self, number: int) -> None:
        """The event of this number, and all before it, are delivered or given up."""
        with self._lock:
            self._delivered = max(self._delivered, number)
            self._newest = max(self._newest, number)
            while self._events and self._events[0].id <= self._delivered:
                self._floor = max(self._floor, self._events.popleft().id)

    def skip_what_was_dropped(self) -> None:
        """Go on with the oldest that is still here."""
        with self._lock:
            self._delivered = max(self._delivered, self._floor)

    def _evict(self) -> None:
        oldest = self._events.popleft()
        self._floor = max(self._floor, oldest.id)
        if oldest.id > self._delivered:
            self._evicted += 1
