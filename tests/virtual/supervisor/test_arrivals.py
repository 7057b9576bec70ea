"""Workers of a cluster that come from another node, and leave for one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.virtual.conftest import SystemFactory
from tests.virtual.simulated_system import SimulatedSystem, W, uptimes, worker

from rekindle.actors.facts.health_status import ShownStatus
from rekindle.actors.facts.records import MetaSet, RememberedWorker
from rekindle.actors.messages import (
    AddWorker,
    FenceWorkers,
    RefundRestarts,
    RemoveWorker,
    StartWorkers,
    WorkerDied,
    WorkerPlaced,
    WorkerStopped,
    WorkerStopping,
)
from rekindle.actors.spec.deployment.assigned import META as EPOCH_META
from rekindle.actors.spec.deployment.assigned import OF_THE_NODE, Assigned, stored
from rekindle.actors.spec.worker_spec import WorkerSpec


@pytest.fixture
def node(new_system: SystemFactory) -> SimulatedSystem:
    """A node without workers, whose first one lives three seconds at a time."""
    system = new_system(scripts={W: uptimes(3, 3, 3, 3, 3, 3)})
    system.specs = ()
    system.restart_application()
    return system.start()


def assigned(epoch: int, node: str = "k1") -> WorkerSpec:
    return replace(worker(), assigned=Assigned(node, epoch))


def test_a_worker_arrives_with_the_restarts_of_other_nodes(node: SimulatedSystem) -> None:
    known = RememberedWorker(
        restart_count=4, streak_count=4, last_restart_wall_ms=node.runtime.clock.wall_ms()
    )
    node.tell(AddWorker(assigned(7), known=known))
    node.run(30)
    (first, second) = [event for _, event in node.events(WorkerDied)]
    assert (first.action, first.restart_count) == ("restart", 5)
    assert (second.action, second.budget.in_window if second.budget else None) == ("mark_failed", 5)


def test_what_a_worker_arrives_with_replaces_what_this_node_remembers(node: SimulatedSystem) -> None:
    node.tell(AddWorker(assigned(7)))
    node.run(5)
    node.tell(RemoveWorker(W, moves=True))
    node.run(1)
    assert node.report().workers == ()
    node.tell(AddWorker(assigned(8), known=RememberedWorker(restart_count=17)))
    node.run(1)
    assert node.status().restart_count == 17


def test_a_failed_worker_arrives_failed(node: SimulatedSystem) -> None:
    node.tell(
        AddWorker(assigned(7), known=RememberedWorker(failed_at_wall_ms=1, failure_reason="5 restarts"))
    )
    node.run(5)
    assert node.status().shown is ShownStatus.FAILED
    assert node.status().failure_reason == "5 restarts"


def test_the_numbers_of_processes_go_on_on_a_node_to_which_a_worker_returns(node: SimulatedSystem) -> None:
    node.tell(AddWorker(assigned(7)))
    node.run(5)
    before = node.status().generation
    node.tell(RemoveWorker(W, moves=True))
    node.run(1)
    node.tell(AddWorker(assigned(8), known=RememberedWorker()))
    node.run(1)
    assert node.status().generation == before + 1
    assert (node.status().node, node.status().epoch) == ("k1", 8)


def test_the_tokens_of_an_epoch_go_on_after_a_restart_of_the_supervisor(node: SimulatedSystem) -> None:
    tokens = []
    for _ in range(2):
        node.tell(AddWorker(assigned(7), known=RememberedWorker()))
        node.run(1)
        tokens.append(stored(node.memory.load().meta)[W].token(node.status().generation))
        node.restart_application()
        node.start().run(1)
    assert tokens[0] < tokens[1] < Assigned("k2", 8).token(0)


def test_no_token_is_given_twice_if_the_journal_has_lost_where_the_epoch_began(
    node: SimulatedSystem,
) -> None:
    """As after a kill between the first start of a worker and the first commit about it."""
    tokens = []
    for _ in range(2):
        node.tell(AddWorker(assigned(7), known=RememberedWorker()))
        node.run(1)
        tokens.append(stored(node.memory.load().meta)[W].token(node.status().generation))
        node.memory.commit((MetaSet(EPOCH_META + W, None),))
        node.restart_application()
        node.start().run(1)
    assert tokens[0] < tokens[1]


def test_a_worker_that_moves_away_is_no_order_of_an_operator(node: SimulatedSystem) -> None:
    node.tell(AddWorker(assigned(7)))
    node.run(1)
    node.tell(RemoveWorker(W, moves=True))
    node.run(1)
    assert [event.reason for _, event in node.events(WorkerStopping)] == ["moved"]
    assert node.events(WorkerDied) == []


def test_a_fence_kills_all_workers_and_counts_against_none(node: SimulatedSystem) -> None:
    node.tell(AddWorker(assigned(7)))
    node.run(1)
    node.tell(FenceWorkers())
    node.run(10)
    assert [event.reason for _, event in node.events(WorkerStopping)] == ["fenced"]
    assert [event.forced for _, event in node.events(WorkerStopped)] == [9]
    assert (node.status().shown, node.status().restart_count) == (ShownStatus.STOPPED, 0)
    node.tell(StartWorkers())
    node.run(1)
    assert node.status().shown is ShownStatus.HEALTHY


def test_restarts_that_another_node_was_at_fault_for_count_no_longer(node: SimulatedSystem) -> None:
    node.tell(AddWorker(assigned(7), known=RememberedWorker(restart_count=4, streak_count=3)))
    node.run(0.5)
    node.tell(RefundRestarts(W, 3))
    node.run(0.5)
    assert (node.status().restart_count, node.status().shown) == (1, ShownStatus.HEALTHY)
    node.tell(RefundRestarts(W, 3))
    node.run(0.5)
    assert node.status().restart_count == 0


def test_a_fence_spares_the_workers_of_the_node_itself(node: SimulatedSystem) -> None:
    """Such as its Ray: they need no lease."""
    ours = f"{OF_THE_NODE}ray:0"
    node.tell(AddWorker(replace(worker(), id=ours)))
    node.tell(AddWorker(assigned(7)))
    node.run(1)
    node.tell(FenceWorkers())
    node.run(10)
    assert (node.status(ours).shown, node.status().shown) == (ShownStatus.HEALTHY, ShownStatus.STOPPED)


def test_a_node_announces_each_epoch_once(node: SimulatedSystem) -> None:
    known = RememberedWorker(restart_count=3)
    node.tell(AddWorker(assigned(7), known=known))
    node.run(1)
    assert [event for _, event in node.events(WorkerPlaced)] == [WorkerPlaced(W, "k1", 7, 3)]
    node.restart_application()
    node.start()
    node.tell(AddWorker(assigned(7), known=known))
    node.run(1)
    assert node.events(WorkerPlaced) == []
