"""Pure: numbers the events and decides which of them may be published.

    taken ─▶ in a batch ─▶ persisted ─▶ published
                    └── the store is unavailable ─▶ published from memory, persisted later

Events are published in the order of their numbers, by either route.
"""

from __future__ import annotations

from collections import deque

import msgspec

from ..facts.records import EventRecord
from ..messages import Event, Passing, Published
from ..messages.event_json import numbered
from ..messages.internal.to_broker import Notice, Unnumbered


class _Entry(msgspec.Struct, frozen=True):
    item: Published | Unnumbered
    taken_at: float
    """Monotonic seconds."""


class Outbox:
    """Events and notices that are not published yet, in order."""

    def __init__(self, last_id: int) -> None:
        self._last_id = last_id
        self._entries: deque[_Entry] = deque()
        self.persisted_id = last_id
        """All events up to this number are in the store, or were given up."""
        self.from_memory = False
        """The store is unavailable: publish without waiting for it."""

    @property
    def oldest_wait(self) -> float | None:
        """Since when the first entry has waited, in monotonic seconds."""
        return self._entries[0].taken_at if self._entries else None

    def take(self, event: Event, at_wall_ms: int, now: float) -> EventRecord:
        """Number an event and queue it; return the record to persist."""
        record = numbered(self._last_id + 1, at_wall_ms, event)
        self._last_id = record.id
        self._entries.append(_Entry(Published(record.id, at_wall_ms, event, record), now))
        return record

    def note(self, notice: Notice | Passing, at_wall_ms: int, now: float) -> None:
        """Queue a notice, to be published in its place among the events."""
        self._entries.append(_Entry(Unnumbered(notice, at_wall_ms), now))

    def persisted(self, last_id: int) -> None:
        """Record that everything up to this number is in the store."""
        self.persisted_id = max(self.persisted_id, last_id)

    def ready(self) -> tuple[Published | Unnumbered, ...]:
        """Remove and return what may be published now, in order."""
        ready: list[Published | Unnumbered] = []
        while self._entries:
            item = self._entries[0].item
            if isinstance(item, Published) and item.id > self.persisted_id:
                if not self.from_memory:
                    break
                item = msgspec.structs.replace(item, kept=False)
            self._entries.popleft()
            ready.append(item)
        return tuple(ready)
