"""Pure: the numbers of events, and which of them may be told already.

    taken ─▶ unsent ─▶ with the persistence actor ─▶ kept ─▶ told
                              └── the store is away ─▶ told from memory, written later

Events are told in the order of their numbers, whatever way they go.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import msgspec

from ..facts.records import EventRecord
from ..messages import Event, Passing, Published, is_event
from ..messages.event_json import numbered
from ..messages.internal.to_broker import Notice

RECENT = 256
"""So many events are at hand for readers that come back; older ones are in the store."""

MOST_UNSAVED = 10_000
"""In an outage so many that the store does not have are at hand."""


class Entry(msgspec.Struct, frozen=True):
    """An event or a notice, in its place."""

    said: Event | Notice
    record: EventRecord | None
    """None for what is not kept."""
    at_wall_ms: int
    taken_at: float
    """Monotonic seconds."""


class Outbox:
    """What is on its way to the store and to the listeners."""

    def __init__(self, last_id: int) -> None:
        self._last_id = last_id
        self._kept_id = last_id
        self._waiting: deque[Entry] = deque()
        self._recent: deque[Published] = deque()
        self.last_told = last_id
        self.from_memory = False
        """The store is away: nothing is waited for."""

    @property
    def oldest_wait(self) -> float | None:
        """Since when the first one that is not told yet has waited."""
        return self._waiting[0].taken_at if self._waiting else None

    @property
    def recent(self) -> tuple[Published, ...]:
        """The latest events that were told, oldest first."""
        return tuple(self._recent)

    def take(self, event: Event, at_wall_ms: int, now: float) -> EventRecord:
        """Give an event its number, and its place among those to be told."""
        record = numbered(self._last_id + 1, at_wall_ms, event)
        self._waiting.append(Entry(event, record, at_wall_ms, now))
        self._last_id = record.id
        return record

    def note(self, notice: Notice | Passing, at_wall_ms: int, now: float) -> None:
        """Have a notice told in its place among the events."""
        self._waiting.append(Entry(notice, None, at_wall_ms, now))

    def kept(self, last_id: int) -> None:
        """Everything up to this number is in the store."""
        self._kept_id = max(self._kept_id, last_id)

    def ready(self) -> Iterator[tuple[Entry, Published | None]]:
        """Those that may be told now, in order; each is given out once."""
        while self._waiting and self._may_go(self._waiting[0]):
            entry = self._waiting.popleft()
            yield entry, None if entry.record is None else self._published(entry, entry.record)

    def _may_go(self, entry: Entry) -> bool:
        return self.from_memory or entry.record is None or entry.record.id <= self._kept_id

    def _published(self, entry: Entry, record: EventRecord) -> Published:
        assert is_event(entry.said)
        told = Published(record.id, record.at_wall_ms, entry.said, record, record.id <= self._kept_id)
        self.last_told = record.id
        self._recent.append(told)
        spare = len(self._recent) - RECENT
        if spare > 0 and (self._recent[0].id <= self._kept_id or len(self._recent) > MOST_UNSAVED):
            self._recent.popleft()
            if spare > 1 and self._recent[0].id <= self._kept_id:  # after an outage there are more
                self._recent.popleft()
        return told
