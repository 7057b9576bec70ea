"""The System of a node, as its Agent uses it: the real `Host`.

    Agent ─ start ─▶ System.add (its counters, its epoch) ; Courier: TenureBegan
    Agent ─ stop ──▶ Supervisor: RemoveWorker ─▶ the journal: WorkerRemoved ─▶ Courier ─▶ Agent: TenureStopped
    Agent ─ fence ─▶ Supervisor: FenceWorkers, then RemoveWorker for each
    Agent ─ guard ─▶ the guardian, and the Courier: until when deaths count

Starts wait for the reply of the Supervisor, so they have a thread of their own; a fence waits for nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from queue import SimpleQueue
from typing import Protocol

import msgspec
from loguru import logger

from ..errors import ConfigurationError, RekindleError, RequestTimeoutError, SocketError, SpecError
from ..facts.records import RememberedWorker
from ..messages import (
    CountersRefunded,
    Event,
    FenceWorkers,
    LeaseLost,
    LeaseRegained,
    RefundRestarts,
    RemoveWorker,
)
from ..ports import Clock, Receiver
from ..runtime.resilient_actor import tell
from ..spec.deployment.assigned import Assigned
from ..spec.worker_spec import WorkerSpec
from .cluster_messages import StartTenure, TenureStopped, WorkerRefused
from .courier_messages import GuardedUntil, TenureBegan
from .facts.tenures import Tenure
from .facts.wishes import Wish
from .rules.tenure_news import begun


class SupervisedHost(Protocol):
    """What the host needs of a `System`."""

    def add(self, spec: WorkerSpec, *, known: RememberedWorker | None = None) -> None:
        """Supervise one more worker."""
        ...

    def change_worker(self, spec: WorkerSpec) -> None:
        """Supervise a worker by another spec."""
        ...

    def announce(self, event: Event) -> None:
        """Publish an event."""
        ...

    def guard_until(self, until: float) -> None:
        """Have the guardian kill all workers at that time."""
        ...


CLOSE_S = 5.0
REST_S = 1.0
"""After a start that the supervisor did not take over, before the next order."""

REFUSALS = SpecError, ConfigurationError, SocketError
"""Why this node cannot run a worker, now and later."""

SpecOf = Callable[[Wish], WorkerSpec]
"""The spec that a wish stands for on this machine; raises RekindleError."""


class ChangeTenure(msgspec.Struct, frozen=True):
    """A worker that runs here gets another spec."""

    wish: Wish
    epoch: int


class NodeStarts:
    """Adds and changes workers, one after the other, on a thread that may wait for the Supervisor."""

    def __init__(self, host: NodeHost) -> None:
        self._host = host
        self._orders: SimpleQueue[StartTenure | ChangeTenure | None] = SimpleQueue()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="rekindle-node", daemon=True)
        self._thread.start()

    def tell(self, message: StartTenure | ChangeTenure) -> None:
        """Take one order."""
        self._orders.put(message)

    def close(self) -> None:
        """End the thread."""
        self._closing.set()
        self._orders.put(None)
        self._thread.join(CLOSE_S)

    def rest(self) -> None:
        """Wait before the next order: the agent may repeat at once what has failed."""
        self._closing.wait(REST_S)

    def _work(self) -> None:
        while (order := self._orders.get()) is not None:
            try:
                self._carry_out(order)
            except Exception as error:  # noqa: BLE001  # the next order must not wait forever
                logger.opt(exception=error).error("cluster: an order of the agent failed")

    def _carry_out(self, order: StartTenure | ChangeTenure) -> None:
        match order:
            case StartTenure():
                self._host.start_now(order)
            case ChangeTenure(wish=wish, epoch=epoch):
                self._host.change_now(wish, epoch)


class NodeHost:
    """Carries out what the Agent orders. Its methods do not wait; `start_now` and `change_now` do."""

    def __init__(
        self,
        system: SupervisedHost,
        *,
        node_id: str,
        node: str,
        clock: Clock,
        supervisor: Receiver,
        couriers: tuple[Receiver, ...],
        agent: Callable[[], Receiver],
        spec_of: SpecOf,
        note_until: Callable[[int], None] = lambda _until_ms: None,
    ) -> None:
        """Take the ports; `couriers` has that of the counters first.

        `note_until` keeps the end of the right for the next life of the agent.
        """
        self._system, self._supervisor, self._couriers, self._agent = system, supervisor, couriers, agent
        self._courier, self._note_until = couriers[0], note_until
        self._node_id, self._node, self._clock, self._spec_of = node_id, node, clock, spec_of
        self._until = 0.0
        self._is_fenced = False
        self._epochs: dict[str, int] = {}
        """What runs here, by worker."""
        self._starts = NodeStarts(self)

    # ── the port ─────────────────────────────────────────────────────────────────────────

    def start(self, order: StartTenure) -> None:
        """Supervise a worker, with the counters and the epoch that it brings along."""
        self._epochs[order.assignment.component_id] = order.assignment.epoch
        tell(self._starts, order)

    def change(self, wish: Wish) -> None:
        """Take over a new spec of a worker that runs here."""
        epoch = self._epochs.get(wish.component_id)
        if epoch is not None:
            tell(self._starts, ChangeTenure(wish, epoch))

    def stop(self, component_id: str, epoch: int) -> None:
        """End a worker by its own stop policy, without counting it, and supervise it no longer."""
        if self._epochs.get(component_id) == epoch:
            del self._epochs[component_id]
            tell(self._supervisor, RemoveWorker(component_id, moves=True))

    def kill(self, component_id: str, epoch: int) -> None:
        """Kill a worker that was told to stop under this epoch."""
        if self._epochs.get(component_id, epoch) == epoch:  # no later one was started meanwhile
            tell(self._supervisor, FenceWorkers(ids=(component_id,)))

    def refund(self, component_id: str, epoch: int, restarts: int) -> None:
        """Have restarts that another node was at fault for not count here."""
        if self._epochs.get(component_id) == epoch:
            tell(self._supervisor, RefundRestarts(component_id, restarts))
            self._system.announce(CountersRefunded(component_id, restarts))

    def fence(self) -> None:
        """Kill all workers, and supervise them no longer."""
        if self._epochs:
            self._is_fenced = True
            self._system.announce(LeaseLost(self._node))
            tell(self._supervisor, FenceWorkers())
        for component_id, epoch in tuple(self._epochs.items()):
            self.stop(component_id, epoch)

    def guard(self, until: float | None) -> None:
        """Tell the guardian when to kill the workers; None: now."""
        now = self._clock.monotonic()
        self._until = now if until is None else until
        now_ms = time.time_ns() // 1_000_000
        until_ms = now_ms + round((self._until - now) * 1000)
        self._note_until(until_ms)
        for courier in self._couriers:
            tell(courier, GuardedUntil(until_ms, now_ms))
        self._system.guard_until(self._until)
        if self._is_fenced and self._until > now:
            self._is_fenced = False
            self._system.announce(LeaseRegained(self._node))

    def close(self) -> None:
        """End the thread that starts workers."""
        self._starts.close()

    # ── what waits for the Supervisor ────────────────────────────────────────────────────

    def start_now(self, order: StartTenure) -> None:
        """Add the worker, unless the right to run it has ended meanwhile."""
        assignment = order.assignment
        id_, epoch = assignment.component_id, assignment.epoch
        tenure = order.tenure or begun(assignment, self._node_id, order.known)
        try:
            spec = self._spec(order.wish, epoch)
        except RekindleError as error:
            self._refuse(id_, epoch, error)
            return
        if self._epochs.get(id_) != epoch or not self._has_right():
            self._not_started(tenure)
            return
        tell(self._courier, TenureBegan(tenure))
        try:
            self._system.add(spec, known=order.known)
        except REFUSALS as error:
            self._refuse(id_, epoch, error)
        except RequestTimeoutError as error:
            # The supervisor may still add it: its removal follows, and the end of that is told as any other.
            logger.bind(worker=id_).warning("cluster: {} has not started yet: {}", id_, str(error))
            self._remove(id_)
        except RekindleError as error:  # such as: it is stopping. Another time, or another node, may do.
            logger.bind(worker=id_).warning("cluster: {} cannot be started: {}", id_, str(error))
            self._starts.rest()
            self._not_started(tenure)
        else:
            if self._epochs.get(id_) != epoch:  # it was to stop before the Supervisor knew it
                self._remove(id_)

    def _spec(self, wish: Wish, epoch: int) -> WorkerSpec:
        """The spec of a worker here: it waits for those of its group, which run here."""
        spec = self._spec_of(wish)
        after = tuple(id_ for id_ in spec.after if id_ in self._epochs)
        until = {id_: state for id_, state in spec.until.items() if id_ in after}
        return replace(spec, after=after, until=until, assigned=Assigned(self._node, epoch))

    def _has_right(self) -> bool:
        return self._clock.monotonic() < self._until

    def _remove(self, component_id: str) -> None:
        """End a worker that the Supervisor may have heard of after the agent's last order."""
        if not self._has_right():
            tell(self._supervisor, FenceWorkers())
        tell(self._supervisor, RemoveWorker(component_id, moves=True))

    def _not_started(self, tenure: Tenure) -> None:
        self._forget(tenure.component_id, tenure.epoch)
        tell(
            self._agent(), TenureStopped(component_id=tenure.component_id, epoch=tenure.epoch, tenure=tenure)
        )

    def _refuse(self, component_id: str, epoch: int, error: RekindleError) -> None:
        self._forget(component_id, epoch)
        tell(self._agent(), WorkerRefused(component_id=component_id, epoch=epoch, reason=str(error)))

    def _forget(self, component_id: str, epoch: int) -> None:
        if self._epochs.get(component_id) == epoch:
            del self._epochs[component_id]

    def change_now(self, wish: Wish, epoch: int) -> None:
        """Supervise the worker by its new spec."""
        try:
            spec = self._spec(wish, epoch)
            self._system.change_worker(spec)
        except RekindleError as error:
            log = logger.bind(worker=wish.component_id)
            log.error("cluster: {} keeps its former settings: {}", wish.component_id, str(error))
