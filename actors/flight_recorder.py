"""The flight recorder: what happened to a worker, put together from the store and from memory.

Events and deaths are in the store. What workers used is told and not kept, so the latest
samples are held here, for as long as the supervisor lives. Safe to use from any thread.
"""

from __future__ import annotations

import threading
import time
from collections import deque

from .event_text import numbered
from .messages import Event, ResourcesSampled
from .ports import Store
from .records import EventRecord
from .timeline import Sources, Timeline, timeline

MOST_SAMPLES = 5000
"""Of all workers together: hours of a few dozen, at one a minute."""


class FlightRecorder:
    """Listens for samples, and answers with timelines."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._samples: deque[tuple[int, ResourcesSampled]] = deque(maxlen=MOST_SAMPLES)
        self._lock = threading.Lock()

    def tell(self, message: Event) -> None:
        """Hold a sample; everything else is in the store."""
        if isinstance(message, ResourcesSampled):
            with self._lock:
                self._samples.append((time.time_ns() // 1_000_000, message))

    def timeline(
        self, component_id: str, *, since_wall_ms: int = 0, limit: int = 100, running_ms: int = 0
    ) -> Timeline:
        """What happened to a worker since then, newest first.

        Raises:
            StoreUnavailableError: the store cannot be read now.
        """
        # Of five events about a death four lines are left at the worst, of four three.
        events = 2 * limit + 1
        deaths = self._store.deaths(component_id, limit=limit + 1)
        known = Sources(
            own=self._store.events_of(component_id, since_wall_ms=since_wall_ms, limit=events),
            system=self._store.events_of(None, since_wall_ms=since_wall_ms, limit=events),
            samples=self._sampled(component_id, since_wall_ms)[:events],
            deaths=[each for each in deaths if each.died_at_wall_ms >= since_wall_ms],
            lives=self._store.lives(component_id),
        )
        return timeline(component_id, known, limit=limit, running_ms=running_ms)

    def _sampled(self, component_id: str, since_wall_ms: int) -> list[EventRecord]:
        with self._lock:
            held = tuple(self._samples)
        return [
            numbered(0, at, sample)
            for at, sample in reversed(held)
            if sample.component_id == component_id and at >= since_wall_ms
        ]
