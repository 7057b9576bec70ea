"""Counts of events since the start; a subscriber of the Broker."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass

from ...deaths.death import Action, Cause
from ...messages import Event, Published, Snapshot, WorkerDied
from ...messages.event_json import event_type


@dataclass(frozen=True, slots=True)
class EventTotals:
    """The counts at one moment."""

    deaths: Counter[tuple[str, Cause]]
    restarts: Counter[str]
    events: Counter[str]
    last_event_id: int


class EventCounts:
    """Counts events. The Broker's thread writes, any thread reads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._deaths: Counter[tuple[str, Cause]] = Counter()
        self._restarts: Counter[str] = Counter()
        self._events: Counter[str] = Counter()
        self._last_event_id = 0

    def tell(self, message: object) -> None:
        """Count an event; other messages are ignored."""
        with self._lock:
            match message:
                case Published(id=number, event=event):
                    self._last_event_id = number
                    self._count(event)
                case Snapshot(last_id=number):
                    self._last_event_id = number
                case _:
                    pass

    def now(self) -> EventTotals:
        """The counts so far."""
        with self._lock:
            return EventTotals(
                Counter(self._deaths),
                Counter(self._restarts),
                Counter(self._events),
                self._last_event_id,
            )

    def _count(self, event: Event) -> None:
        self._events[event_type(type(event))] += 1
        if isinstance(event, WorkerDied):
            self._deaths[event.component_id, event.death.cause] += 1
            self._restarts[event.component_id] += Action(event.action).restarts
