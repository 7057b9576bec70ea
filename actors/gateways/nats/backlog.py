"""The events that are not delivered yet: added by the Broker's thread, taken by the gateway's.

Its size is bounded. When it is full, core NATS drops the oldest event and counts it; with JetStream
the event only leaves memory, and is read back from the store.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

from ...facts.records import EventRecord


class Backlog:
    """Undelivered events. Safe to use from two threads, which wait for nothing but the lock."""

    def __init__(self, most: int, *, delivered: int, newest: int) -> None:
        """Begin after the last delivered event; the events since then are in the store."""
        self._most = most
        self._lock = threading.Lock()
        self._events: deque[EventRecord] = deque()
        self._floor = newest
        """Events up to this number are no longer in memory."""
        self._newest = newest
        self._delivered = delivered
        self._evicted = 0

    @property
    def delivered(self) -> int:
        """The last event that is delivered, with all before it."""
        return self._delivered

    @property
    def waiting(self) -> int:
        """How many events are not delivered; their numbers are consecutive."""
        return max(0, self._newest - self._delivered)

    @property
    def dropped(self) -> int:
        """How many left memory before they were delivered."""
        return self._evicted

    def add(self, record: EventRecord) -> None:
        """Add an event; without room the oldest leaves."""
        with self._lock:
            self._events.append(record)
            self._newest = max(self._newest, record.id)
            if len(self._events) > self._most:
                self._evict()

    def next(self, limit: int) -> Sequence[EventRecord] | None:
        """The next events; None if some of them left memory."""
        with self._lock:
            if self._floor > self._delivered:
                return None
            waiting = (record for record in self._events if record.id > self._delivered)
            return [record for record, _ in zip(waiting, range(limit), strict=False)]

    def settle(self, number: int) -> None:
        """Mark this event, and all before it, as delivered or dropped."""
        with self._lock:
            self._delivered = max(self._delivered, number)
            self._newest = max(self._newest, number)
            while self._events and self._events[0].id <= self._delivered:
                self._floor = max(self._floor, self._events.popleft().id)

    def skip_dropped(self) -> None:
        """Continue with the oldest event in memory."""
        with self._lock:
            self._delivered = max(self._delivered, self._floor)

    def _evict(self) -> None:
        oldest = self._events.popleft()
        self._floor = max(self._floor, oldest.id)
        if oldest.id > self._delivered:
            self._evicted += 1
