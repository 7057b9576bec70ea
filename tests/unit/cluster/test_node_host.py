"""What the host of a node tells when the System does not take a worker over."""

from __future__ import annotations

from queue import SimpleQueue
from typing import Any

import pytest

from rekindle.actors import WorkerSpec, command
from rekindle.actors.cluster import node_host
from rekindle.actors.cluster.cluster_messages import StartTenure, TenureStopped, WorkerRefused
from rekindle.actors.cluster.facts.tenures import Assignment, TenurePhase
from rekindle.actors.cluster.facts.wishes import Wish
from rekindle.actors.cluster.node_host import NodeHost
from rekindle.actors.errors import ConfigurationError, RequestRefusedError, RequestTimeoutError
from rekindle.actors.facts.records import RememberedWorker
from rekindle.actors.messages import CountersRefunded, Event, FenceWorkers, RemoveWorker
from rekindle.actors.simulation.simulation_runtime import VirtualClock

W = "worker:web:0"


class Told:
    """Takes messages."""

    def __init__(self) -> None:
        self._messages: SimpleQueue[Any] = SimpleQueue()

    def tell(self, message: object) -> None:
        """Take one."""
        self._messages.put(message)

    def next(self) -> Any:
        """The next message."""
        return self._messages.get(timeout=20.0)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left."""
        return self._messages.empty()


class HostCase:
    """A host whose System does as it is told to."""

    def __init__(self, error: Exception | None = None, takes_s: float = 0.0) -> None:
        self.clock, self.supervisor, self.agent, self.courier = VirtualClock(), Told(), Told(), Told()
        self.error, self.takes_s = error, takes_s
        self.said: list[Event] = []
        self.host = NodeHost(
            self,
            node_id="n",
            node="n",
            clock=self.clock,
            supervisor=self.supervisor,
            couriers=(self.courier,),
            agent=lambda: self.agent,
            spec_of=lambda _wish: WorkerSpec(W, command("sleep", "60")),
        )
        self.host.guard(3.0)

    def add(self, spec: WorkerSpec, *, known: RememberedWorker | None = None) -> None:
        """Let time pass, and fail."""
        del spec, known
        self.clock.now += self.takes_s
        if self.takes_s:
            self.host.fence()
        if self.error is not None:
            raise self.error

    def change_worker(self, spec: WorkerSpec) -> None:
        """Nothing changes."""

    def guard_until(self, until: float) -> None:
        """There is no guardian."""

    def announce(self, event: Event) -> None:
        """Keep what is said."""
        self.said.append(event)

    def start(self) -> None:
        """Order the start of a worker."""
        assignment = Assignment(component_id=W, epoch=5, node_id="n", phase=TenurePhase.PLACED)
        order = StartTenure(wish=Wish(component_id=W), assignment=assignment, known=RememberedWorker())
        self.host.start(order)


@pytest.fixture(autouse=True)
def short_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests do not wait for the next order."""
    monkeypatch.setattr(node_host, "REST_S", 0.0)


def test_a_worker_that_the_supervisor_adds_late_is_removed_and_not_refused() -> None:
    case = HostCase(RequestTimeoutError("no reply within 10 s"))
    case.start()
    assert case.supervisor.next() == RemoveWorker(W, moves=True)
    case.host.close()
    assert case.agent.is_empty  # the removal is told when it is complete


def test_a_system_that_is_stopping_is_no_reason_to_refuse_the_worker() -> None:
    case = HostCase(RequestRefusedError("the system is stopping"))
    case.start()
    stopped = case.agent.next()
    assert isinstance(stopped, TenureStopped)
    assert (stopped.component_id, stopped.epoch) == (W, 5)
    case.host.close()


def test_a_worker_that_the_node_cannot_run_is_refused_with_the_reason() -> None:
    case = HostCase(ConfigurationError("its port is taken"))
    case.start()
    assert case.agent.next() == WorkerRefused(component_id=W, epoch=5, reason="its port is taken")
    case.host.close()


def test_a_worker_that_is_added_after_the_end_of_the_right_is_killed() -> None:
    case = HostCase(takes_s=5.0)
    case.start()
    told = [case.supervisor.next() for _ in range(4)]
    fenced = [FenceWorkers(), RemoveWorker(W, moves=True)]
    assert told == [*fenced, *fenced]
    case.host.close()


def test_restarts_that_no_longer_count_are_told_to_the_supervisor_and_to_people() -> None:
    case = HostCase()
    case.start()
    case.said.clear()
    case.host.refund(W, 5, 2)
    case.host.refund(W, 4, 2)  # a former epoch
    case.host.close()
    assert case.said == [CountersRefunded(W, 2)]
