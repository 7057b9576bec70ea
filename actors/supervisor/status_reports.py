"""The replies to `ReportStatus`: every worker, the breakers, and whether the store takes records.

Belongs to the Supervisor and runs in it.
"""

from __future__ import annotations

from .. import supervision
from ..messages import StatusReport, StoreDegraded, WorkerStatus
from ..messages.internal.to_monitor import CompleteReport
from ..ports import Clock, Receiver
from ..runtime.resilient_actor import tell
from ..supervision.worker import SupervisedWorker
from ..views.worker_status import worker_status
from .breakers import Breakers
from .groups import Groups
from .orders.standing_orders import StandingOrders
from .pending.pause_ends import PauseEnds
from .rollouts import Rollouts
from .workers import Workers


class StatusReports:
    """Puts together what a status view shows."""

    def __init__(
        self,
        clock: Clock,
        workers: Workers,
        orders: StandingOrders,
        breakers: Breakers,
        pause_ends: PauseEnds,
        groups: Groups,
        *,
        monitor: Receiver,
    ) -> None:
        self.degraded: StoreDegraded | None = None
        """What the persistence actor reported of an outage that lasts."""
        self.unanswered: set[tuple[str, int]] = set()
        """Deaths that the store did not confirm in time, as (component_id, generation)."""
        self._clock = clock
        self._workers = workers
        self._orders = orders
        self._breakers = breakers
        self._pause_ends = pause_ends
        self._groups = groups
        self._monitor = monitor
        self.rollouts: Rollouts | None = None

    def send(self, reply_to: Receiver | None) -> None:
        """Answer with a report. The monitor sends it, since it knows when a worker was last heard from."""
        if reply_to is not None:
            tell(self._monitor, CompleteReport(self.report(), reply_to))

    def report(self) -> StatusReport:
        """All workers, in the order in which they were declared."""
        unsaved, degraded = self._trouble()
        return StatusReport(
            tuple(self._status(worker) for worker in self._workers),
            paused=self._orders.pauses.everything,
            unsaved=unsaved,
            degraded=degraded,
            breakers=self._breakers.report(),
            groups=self._groups.report(),
            rollouts=() if self.rollouts is None else self.rollouts.report(),
        )

    def store_recovered(self) -> None:
        """The store takes records again."""
        self.degraded = None
        # In a long outage records are dropped, and the store does not answer for each of them.
        self.unanswered.clear()

    def _status(self, worker: SupervisedWorker) -> WorkerStatus:
        pauses = self._orders.pauses
        return worker_status(
            worker,
            round(self._clock.monotonic() * 1000),
            wall_ms=self._clock.wall_ms(),
            pause=pauses.of(worker.id),
            pause_ends_in_s=self._pause_ends.left_s(pauses.key(worker.id)),
            waits_for=self._workers.waits_for(worker),
            held=self._breakers.outlook(worker) if supervision.is_held(worker) else None,
            leaving=self._workers.is_leaving(worker.id),
        )

    def _trouble(self) -> tuple[int, str | None]:
        """How many records the store has not taken, and why, as far as is known."""
        if self.degraded is not None:
            return self.degraded.unsaved, self.degraded.reason
        if self.unanswered:
            return len(self.unanswered), "the store does not answer"
        return 0, None
