"""What a store remembers, for whoever looks at it while nobody supervises."""

from __future__ import annotations

from rekindle.actors.errors import UnknownWorkerError
from rekindle.actors.facts.alert import Alert
from rekindle.actors.messages import StatusReport
from rekindle.actors.ports import Store
from rekindle.actors.rules.alert_rules import ordered
from rekindle.actors.system.queries import Looking


class Remembering(Looking):
    """A system without actors: it can be asked about the past, and of the present it knows nobody."""

    def __init__(self, store: Store) -> None:
        super().__init__((), store)

    def known(self) -> tuple[str, ...]:
        """The workers of whom something is kept."""
        kept = self._store.load()
        return tuple(sorted({*kept.workers, *kept.generations}))

    def report(self) -> StatusReport:
        """Nobody runs."""
        return StatusReport((), paused=False, unsaved=0, degraded=None)

    def check(self, component_id: str) -> None:
        """Make sure that something is kept of a worker.

        Raises:
            UnknownWorkerError: nothing is.
        """
        if component_id not in self.known():
            raise self._unknown(component_id)

    def alerts(self) -> tuple[Alert, ...]:
        """Those that were not over at the end, and the latest of those that were; the worst first."""
        return tuple(ordered(self._store.alerts()))

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()

    def _unknown(self, component_id: str) -> UnknownWorkerError:
        return UnknownWorkerError(component_id, self.known())
