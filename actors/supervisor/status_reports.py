"""The replies to `ReportStatus`: every worker, the breakers, and whether the store takes records.

Belongs to the Supervisor and runs in it.
"""

from __future__ import annotations

from .. import supervision
from ..messages import StatusReport, StoreDegraded, WorkerStatus
from ..ports import Clock
from ..supervision.worker import Worker
from ..views.worker_status import worker_status
from .breakers import Breakers
from .crew import Crew
from .pause_ends import PauseEnds
from .standing_orders import StandingOrders


class StatusReports:
    """Puts together what a status view shows."""

    def __init__(
        self, clock: Clock, crew: Crew, orders: StandingOrders, breakers: Breakers, pause_ends: PauseEnds
    ) -> None:
        self.degraded: StoreDegraded | None = None
        """What the persistence actor reported of an outage that lasts."""
        self.unanswered: set[tuple[str, int]] = set()
        """Deaths that the store did not confirm in time, as (component_id, generation)."""
        self._clock = clock
        self._crew = crew
        self._orders = orders
        self._breakers = breakers
        self._pause_ends = pause_ends

    def report(self) -> StatusReport:
        """All workers, in the order in which they were declared."""
        unsaved, degraded = self._trouble()
        return StatusReport(
            tuple(self._status(worker) for worker in self._crew),
            paused=self._orders.pauses.everything,
            unsaved=unsaved,
            degraded=degraded,
            breakers=self._breakers.report(),
        )

    def store_recovered(self) -> None:
        """The store takes records again."""
        self.degraded = None
        # In a long outage records are dropped, and the store does not answer for each of them.
        self.unanswered.clear()

    def _status(self, worker: Worker) -> WorkerStatus:
        pauses = self._orders.pauses
        return worker_status(
            worker,
            round(self._clock.monotonic() * 1000),
            pause=pauses.of(worker.id),
            pause_ends_in_s=self._pause_ends.left_s(pauses.key(worker.id)),
            waits_for=self._crew.waits_for(worker),
            held=self._breakers.outlook(worker) if supervision.is_held(worker) else None,
        )

    def _trouble(self) -> tuple[int, str | None]:
        """How many records the store has not taken, and why, as far as is known."""
        if self.degraded is not None:
            return self.degraded.unsaved, self.degraded.reason
        if self.unanswered:
            return len(self.unanswered), "the store does not answer"
        return 0, None
