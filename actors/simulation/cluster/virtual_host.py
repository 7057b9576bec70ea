"""The workers of one virtual node: a small supervisor with a journal, and their processes.

The journal is on the disk of the machine: it outlasts the agent and the machine. The processes crash at
random; the supervisor counts each crash, starts the next process after a moment, and ships the tenure to
the database until that has it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ...cluster.cluster_messages import Changed, JournalShipped, KeepTenure, StartTenure, TenureStopped
from ...cluster.facts.tenures import Tenure
from ...cluster.facts.wishes import Wanted, Wish
from ...cluster.rules.fencing_tokens import token
from ...cluster.rules.tenure_counters import merged
from ...ports import Timer
from ...spec.deployment.place_policy import OnPartition
from .cluster_rules import Began, ProcessEnd
from .virtual_events import VirtualEvents

if TYPE_CHECKING:
    from .cluster_run import ClusterRun
    from .virtual_node import VirtualNode

SHIP_AGAIN_S = 0.5


@dataclass(slots=True)
class Process:
    """A process of a worker, on a machine."""

    worker: str
    epoch: int
    token: int
    keeps: bool = False
    """It continues without a lease."""


@dataclass(slots=True)
class VirtualJournal(VirtualEvents):
    """What is on the disk of a machine."""

    tenures: dict[tuple[str, int], Tenure] = field(default_factory=dict)
    starts: dict[tuple[str, int], int] = field(default_factory=dict)
    unshipped: set[tuple[str, int]] = field(default_factory=set)


@dataclass(slots=True)
class Supervised:
    """A worker that the supervisor of this life of the agent knows."""

    order: StartTenure
    timer: Timer | None = None
    is_stopping: bool = False
    is_paused: bool = False


@dataclass(frozen=True, slots=True)
class StartDue:
    """A process should start."""

    worker: str
    epoch: int


@dataclass(frozen=True, slots=True)
class StopDue:
    """A process that was asked to stop has ended."""

    worker: str
    epoch: int


@dataclass(frozen=True, slots=True)
class CrashSeen:
    """A process has crashed."""

    worker: str
    epoch: int


@dataclass(frozen=True, slots=True)
class ResendDue:
    """What is not yet in the database should be sent again."""


class VirtualHost:
    """The supervisor of one life of an agent."""

    def __init__(self, run: ClusterRun, node: VirtualNode) -> None:
        self._run, self._node = run, node
        self._workers: dict[str, Supervised] = {}
        self._ships = self._has_shipped = False
        self._ship_later(0.0)
        node.journal.lost(self._wall_ms())

    # ── the port ─────────────────────────────────────────────────────────────────────────

    def start(self, order: StartTenure) -> None:
        """Supervise a worker."""
        key = order.assignment.component_id, order.assignment.epoch
        known = self._node.journal.tenures.get(key)
        fresh = Tenure(component_id=key[0], epoch=key[1], node_id=self._node.id)
        self._node.journal.tenures[key] = (
            merged(order.tenure or fresh, known) if known else order.tenure or fresh
        )
        self._node.journal.placed(key[0], self._node.id, key[1], self._wall_ms())
        worker = self._workers[key[0]] = Supervised(order, is_paused=order.wish.wanted is Wanted.PAUSE)
        self._start_later(worker, self._run.chance.uniform(0.0, 0.05))

    def change(self, wish: Wish) -> None:
        """Take over a pause."""
        worker = self._workers.get(wish.component_id)
        if worker is not None:
            worker.is_paused = wish.wanted is Wanted.PAUSE

    def stop(self, component_id: str, epoch: int) -> None:
        """End a worker by its own stop policy."""
        worker = self._workers.get(component_id)
        if worker is None or worker.order.assignment.epoch != epoch or worker.is_stopping:
            return
        self._cancel(worker)
        worker.is_stopping = True
        takes_s = self._run.chance.uniform(0.0, 1.0) if self._node.process(component_id) else 0.0
        self._node.later(takes_s, self, StopDue(component_id, epoch))

    def kill(self, component_id: str, epoch: int) -> None:
        """End a worker that takes too long to stop."""
        worker = self._workers.get(component_id)
        if worker is not None and worker.is_stopping and worker.order.assignment.epoch == epoch:
            self._node.later(0.0, self, StopDue(component_id, epoch))

    def refund(self, component_id: str, epoch: int, restarts: int) -> None:
        """Have restarts that another node was at fault for not count here."""
        worker = self._workers.get(component_id)
        if worker is not None and worker.order.assignment.epoch == epoch:
            known = worker.order.known
            less = replace(known, restart_count=known.restart_count - restarts)
            worker.order = replace(worker.order, known=less)

    def fence(self) -> None:
        """End all workers at once that may not run without a lease."""
        for component_id, worker in list(self._workers.items()):
            if worker.order.wish.place.on_partition is OnPartition.KEEP:
                continue
            self._cancel(worker)
            self._node.end(component_id, ProcessEnd.FENCED)
            if not worker.is_stopping:
                worker.is_stopping = True
                reaped = StopDue(component_id, worker.order.assignment.epoch)
                self._node.later(self._run.delay(), self, reaped)

    def guard(self, until: float | None) -> None:
        """Tell the guardian."""
        self._node.guard(until)

    # ── what happens ─────────────────────────────────────────────────────────────────────

    def tell(self, message: Any) -> None:
        """Take a message."""
        match message:
            case StartDue(worker=worker, epoch=epoch):
                self._spawn(worker, epoch)
            case StopDue(worker=worker, epoch=epoch):
                self._stopped(worker, epoch)
            case CrashSeen(worker=worker, epoch=epoch):
                self._crashed(worker, epoch)
            case ResendDue():
                self._ship()
            case Changed(change=KeepTenure(tenure=tenure)):
                self._shipped(tenure)
            case _:
                pass  # What did not arrive is sent again.

    def _spawn(self, component_id: str, epoch: int) -> None:
        worker = self._workers.get(component_id)
        if worker is None or worker.order.assignment.epoch != epoch or worker.is_stopping:
            return
        keeps = worker.order.wish.place.on_partition is OnPartition.KEEP
        if worker.is_paused or not (keeps or self._node.may_spawn()):
            self._start_later(worker, 0.2)
            return
        run, node = self._run, self._node
        start = node.journal.starts.get((component_id, epoch), 0) + 1
        node.journal.starts[component_id, epoch] = start
        process = Process(component_id, epoch, token(epoch, start), keeps)
        known = worker.order.known.restart_count
        run.note(Began(run.clock.now, node.id, component_id, epoch, process.token, known))
        node.begin(process)
        node.journal.began(component_id, self._wall_ms())
        node.tell_courier()

    def _crashed(self, component_id: str, epoch: int) -> None:
        key = component_id, epoch
        journal = self._node.journal
        journal.crashed(component_id, self._wall_ms())
        self._node.tell_courier()
        before = journal.tenures.get(key) or Tenure(
            component_id=component_id, epoch=epoch, node_id=self._node.id
        )
        after = replace(
            before, restarts=before.restarts + 1, streak=before.streak + 1, noted=before.noted + 1
        )
        journal.tenures[key] = after
        journal.unshipped.add(key)
        self._ship_later(self._run.chance.uniform(0.0, 0.05))
        worker = self._workers.get(component_id)
        if worker is not None and worker.order.assignment.epoch == epoch and not worker.is_stopping:
            self._start_later(worker, self._run.chance.choice((0.0, 0.2, 1.0)))

    def _stopped(self, component_id: str, epoch: int) -> None:
        worker = self._workers.get(component_id)
        if worker is not None and worker.order.assignment.epoch == epoch:
            reason = "moved" if self._node.process(component_id) else "fenced"
            self._node.end(component_id, ProcessEnd.STOPPED)
            self._node.journal.stopped(component_id, reason, self._wall_ms())
            self._node.tell_courier()
            self._gone(component_id, epoch)

    def _gone(self, component_id: str, epoch: int) -> None:
        del self._workers[component_id]
        tenure = self._node.journal.tenures[component_id, epoch]
        self._node.hear(TenureStopped(component_id=component_id, epoch=epoch, tenure=tenure))

    def _wall_ms(self) -> int:
        return self._run.clock.wall_ms()

    def _start_later(self, worker: Supervised, delay_s: float) -> None:
        self._cancel(worker)
        assignment = worker.order.assignment
        worker.timer = self._node.later(delay_s, self, StartDue(assignment.component_id, assignment.epoch))

    def _cancel(self, worker: Supervised) -> None:
        if worker.timer is not None:
            worker.timer.cancel()

    # ── shipping ─────────────────────────────────────────────────────────────────────────

    def _ship_later(self, delay_s: float) -> None:
        if not self._ships:
            self._ships = True
            self._node.later(delay_s, self, ResendDue())

    def _ship(self) -> None:
        self._ships = False
        journal = self._node.journal
        for key in sorted(journal.unshipped):
            self._node.store.change(KeepTenure(journal.tenures[key]), self)
        if journal.unshipped:
            self._ship_later(SHIP_AGAIN_S)
        elif not self._has_shipped:
            self._has_shipped = True
            self._node.hear(JournalShipped())

    def _shipped(self, tenure: Tenure) -> None:
        key = tenure.component_id, tenure.epoch
        journal = self._node.journal
        if journal.tenures[key].noted == tenure.noted:
            journal.unshipped.discard(key)
