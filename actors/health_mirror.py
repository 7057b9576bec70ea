"""The mirror of the health of workers: what is stored of it, for people to read.

Belongs to the HealthMonitor and runs in it. Changes are written together a little later.
"""

from __future__ import annotations

from collections.abc import Mapping

from .messages.internal.to_monitor import MirrorDue
from .messages.internal.to_persistence import Persist
from .ports import Receiver, Runtime
from .rules.worker_health.observed_worker import ObservedWorker, to_mirror
from .runtime.resilient_actor import tell

MIRROR_DELAY_S = 0.5
"""How long a change of health may wait before it is persisted for people to read."""


class HealthMirror:
    """Which workers must be written; workers that sent nothing are not visited."""

    def __init__(self, runtime: Runtime, monitor: Receiver, persistence: Receiver) -> None:
        self._runtime = runtime
        self._monitor = monitor
        self._persistence = persistence
        self._changed: set[str] = set()
        self._heard: set[str] = set()
        """The workers that sent a frame after they were written."""

    def mark(self, worker: ObservedWorker) -> None:
        """Write this worker soon, with all others that changed."""
        if not self._changed:
            self._runtime.timers.after(MIRROR_DELAY_S, self._monitor, MirrorDue())
        self._changed.add(worker.component_id)

    def heard(self, component_id: str) -> None:
        """The worker sent a frame."""
        self._heard.add(component_id)

    def forget(self, component_id: str) -> None:
        """The worker is no longer watched."""
        self._heard.discard(component_id)

    def reset(self) -> None:
        """The timer may be lost: the next change sets another."""
        self._changed.clear()

    def write(self, workers: Mapping[str, ObservedWorker]) -> None:
        """Write what changed, and the heartbeats of workers whose written one is old."""
        now = self._runtime.clock.monotonic()
        records = to_mirror(workers, self._changed, self._heard, now)
        self._changed.clear()
        self._heard.difference_update(record.component_id for record in records)
        tell(self._persistence, Persist(records))
