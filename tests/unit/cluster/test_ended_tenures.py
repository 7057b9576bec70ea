"""What an agent and its courier know of a tenure that ended, when its epoch goes on or is given back."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace
from tests.unit.cluster.leases import DATABASE_MS, T, the_answer

from rekindle.actors.cluster.agent import Agent
from rekindle.actors.cluster.cluster_messages import (
    Changed,
    GiveBack,
    Joined,
    JournalShipped,
    KeepTenure,
    Renew,
    RenewDue,
    StartTenure,
    TenureStopped,
    WorkerRefused,
)
from rekindle.actors.cluster.courier import Courier
from rekindle.actors.cluster.courier_messages import TenureBegan
from rekindle.actors.cluster.facts.nodes import Node
from rekindle.actors.cluster.facts.promises import PromiseAsked, PromiseGot
from rekindle.actors.cluster.facts.tenures import Assignment, Tenure, TenurePhase
from rekindle.actors.cluster.facts.wishes import Wish
from rekindle.actors.facts.node_figures import NodeFigures
from rekindle.actors.messages import LateDeathsMerged, OutageHeld
from rekindle.actors.simulation.simulation_runtime import SimulationRuntime

W, NODE = "worker:web:0", Node(id="n", name="n", boot_id="b")
ASSIGNED = Assignment(component_id=W, epoch=5, node_id="n", phase=TenurePhase.PLACED)
OLD = Tenure(component_id=W, epoch=5, node_id="n", restarts=1, noted=1)
NEW = Tenure(component_id=W, epoch=5, node_id="n", restarts=3, noted=3)


class Notes:
    """Takes whatever an actor asks its ports for."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def __getattr__(self, _name: str) -> Any:
        return lambda *asked: self.asked.extend(asked)

    def of(self, kind: type) -> list[Any]:
        """What it was asked, of one kind."""
        return [each for each in self.asked if isinstance(each, kind)]


class AnAgent:
    """An agent that holds a lease, with the answers of its database."""

    def __init__(self) -> None:
        self.runtime = SimulationRuntime()
        self.store, self.host, self.peers = Notes(), Notes(), Notes()
        self.said: list[object] = []
        self.figures = NodeFigures()
        self.ref = self.runtime.start(
            Agent,
            NODE,
            T,
            runtime=self.runtime,
            store=self.store,
            peers=self.peers,
            host=self.host,
            nonce=lambda: "1",
            announce=self.said.append,
            figures=self.figures,
        )
        self.tell(JournalShipped())
        self.tell(Joined(node=replace(NODE, life="1", incarnation=1), now_ms=DATABASE_MS))

    def tell(self, message: object) -> None:
        """Have the agent handle a message."""
        self.ref.tell(message)
        self.runtime.settle()

    def renewed(self, *tenures: Tenure) -> None:
        """The database answers the next renewal."""
        self.tell(RenewDue("1"))
        answer = the_answer(self.store.of(Renew)[-1], self.runtime.clock.monotonic())
        self.tell(replace(answer, assignments=(ASSIGNED,), wishes=(Wish(component_id=W),), tenures=tenures))


def test_a_worker_that_was_killed_starts_again_with_what_it_counted_before() -> None:
    agent = AnAgent()
    agent.renewed(OLD)
    agent.tell(TenureStopped(component_id=W, epoch=5, tenure=NEW))
    first, again = agent.host.of(StartTenure)
    assert (first.tenure, first.known.restart_count) == (OLD, 1)
    assert (again.tenure, again.known.restart_count) == (NEW, 3)


def test_a_refusal_is_told_again_with_its_reason_until_the_database_has_it() -> None:
    agent = AnAgent()
    agent.renewed()
    agent.tell(WorkerRefused(component_id=W, epoch=5, reason="no such program"))
    agent.renewed()
    told = agent.store.of(GiveBack)
    assert len(told) >= 2
    assert {each.refused for each in told} == {"no such program"}
    assert len(agent.host.of(StartTenure)) == 1


def test_a_running_worker_hears_of_what_was_refunded_on_a_former_node_once() -> None:
    agent = AnAgent()
    former = replace(OLD, epoch=4, restarts=5, refunded=1)
    agent.renewed(former, OLD)
    for refunded in (1, 4, 4):
        agent.renewed(replace(former, refunded=refunded), OLD)
    assert [each for each in agent.host.asked if isinstance(each, int)] == [5, 3]


def test_a_courier_keeps_what_it_counted_when_an_epoch_begins_again() -> None:
    runtime, store = SimulationRuntime(), Notes()
    ref = runtime.start(Courier, "n", runtime=runtime, store=store, journal=Notes(), epochs={}, agent=Notes)
    for tenure in (NEW, OLD):
        ref.tell(TenureBegan(tenure))
        runtime.settle()
    assert [each.tenure for each in store.of(KeepTenure)] == [NEW, NEW]


def a_promise(asked: PromiseAsked) -> PromiseGot:
    """The answer of a member that promises."""
    return PromiseGot(
        member=asked.member, member_incarnation=1, asker=NODE.id, nonce=asked.nonce, granted=True
    )


def test_an_agent_says_once_in_an_outage_that_promises_keep_its_workers() -> None:
    agent = AnAgent()
    agent.renewed()
    said = []
    for _ in range(10):
        said.append(len(agent.said))
        agent.runtime.run_for(0.5)  # the database does not answer
        for asked in agent.peers.of(PromiseAsked)[-2:]:
            agent.tell(a_promise(asked))
    assert said[:5] == [0, 0, 0, 0, 0], "its own right has not ended yet"
    (held,) = agent.said
    assert isinstance(held, OutageHeld)
    assert (held.node, held.members) == (NODE.name, 3)
    assert held.agreed in (2, 3)
    agent.renewed()
    assert agent.figures.renewals.cumulative()[-1][1] >= 2


def test_a_courier_tells_of_restarts_that_became_known_after_the_loss_of_its_node() -> None:
    runtime, said = SimulationRuntime(), list[object]()
    ref = runtime.start(
        Courier,
        "n",
        runtime=runtime,
        store=Notes(),
        journal=Notes(),
        epochs={},
        agent=Notes,
        node="k1",
        announce=said.append,
    )
    for late in (0, 2):
        ref.tell(Changed(change=KeepTenure(NEW), applied=True, late=late))
    runtime.settle()
    assert said == [LateDeathsMerged(W, "k1", 2)]
