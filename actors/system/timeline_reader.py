"""What happened to a worker, put together from the store and from memory.

Events, deaths, jobs and what workers used are in the store. Samples of use are written with
the next records, so the latest of them are held here as well. Safe to use from any thread.
"""

from __future__ import annotations

import threading
from collections import deque

from ..errors import RequestRefusedError
from ..facts.jobs import JobView
from ..facts.records import UsageNoted
from ..messages import Event, ResourcesSampled
from ..ports import Store
from ..views.timeline import Timeline, TimelineSources, timeline

MOST_SAMPLES = 5000
"""Of all workers together: more than ever waits for the store."""

MOST_JOBS = 1000
"""How many of the latest jobs of a worker are read; many of them make one line."""


class TimelineReader:
    """Listens for samples, and answers with timelines."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._samples: deque[UsageNoted] = deque(maxlen=MOST_SAMPLES)
        self._lock = threading.Lock()

    def tell(self, message: Event) -> None:
        """Hold a sample; everything else is in the store."""
        if isinstance(message, ResourcesSampled):
            with self._lock:
                self._samples.append(message.noted)

    def timeline(
        self, component_id: str, *, since_wall_ms: int = 0, limit: int = 100, running_ms: int = 0
    ) -> Timeline:
        """What happened to a worker since then, newest first.

        Raises:
            StoreUnavailableError: the store cannot be read now.
        """
        # Of five events about a death four lines are left at the worst, of four three.
        events = 2 * limit + 1
        store = self._store
        deaths = store.deaths(component_id, limit=limit + 1)
        known = TimelineSources(
            own=store.events_of(component_id, since_wall_ms=since_wall_ms, limit=events),
            system=store.events_of(None, since_wall_ms=since_wall_ms, limit=events),
            usages=self._usages(component_id, since_wall_ms, events),
            jobs=self._jobs(component_id, since_wall_ms),
            deaths=[each for each in deaths if each.died_at_wall_ms >= since_wall_ms],
            lives=store.lives(component_id),
        )
        return timeline(component_id, known, limit=limit, running_ms=running_ms)

    def _jobs(self, component_id: str, since_wall_ms: int) -> tuple[JobView, ...]:
        try:
            jobs = self._store.jobs
        except RequestRefusedError:  # a store without queues
            return ()
        return jobs.taken_by(component_id, since_wall_ms=since_wall_ms, limit=MOST_JOBS, longest=0)

    def _usages(self, component_id: str, since_wall_ms: int, limit: int) -> list[UsageNoted]:
        """The samples in the store, and the samples on their way there."""
        with self._lock:
            held = tuple(self._samples)
        kept = self._store.usages(component_id, since_wall_ms=since_wall_ms, limit=limit)
        stamps = {each.at_wall_ms for each in kept}
        waiting = [
            each
            for each in held
            if each.component_id == component_id
            and each.at_wall_ms >= since_wall_ms
            and each.at_wall_ms not in stamps
        ]
        return sorted((*kept, *waiting), key=lambda each: -each.at_wall_ms)[:limit]
