"""What an engine should have reserved, and what its offers say of the nodes."""

from __future__ import annotations

from msgspec.structs import replace
from tests.unit.cluster.fleets import fleet, node, placed, wish

from rekindle.actors.cluster.engine_messages import NodeOffered
from rekindle.actors.cluster.facts.nodes import NodeState, Resources
from rekindle.actors.cluster.rules.room import offered, reservations, without_agent
from rekindle.actors.spec.deployment.place_policy import PlacePolicy

NEEDS = PlacePolicy(needs={"cpu": 1.0})
A = replace(node("a"), engine_node="10.0.0.1")


def test_a_worker_that_runs_has_a_reservation_on_its_node() -> None:
    (claim,) = reservations(fleet([A], [wish("web:0", NEEDS)], on={"web:0": "a"}), {})
    assert (claim.component_id, claim.epoch, claim.node_id, claim.engine_node) == (
        "web:0",
        5,
        "a",
        "10.0.0.1",
    )
    assert dict(claim.needs.amounts) == {"cpu": 1.0}


def test_a_worker_that_waits_for_the_engine_keeps_its_claim() -> None:
    (claim,) = reservations(fleet([A], [wish("web:0", NEEDS)]), {"web:0": "a"})
    assert claim.node_id == "a"


def test_a_worker_that_fits_nowhere_is_demand() -> None:
    (claim,) = reservations(fleet([A], [wish("web:0", NEEDS)]), {})
    assert claim.node_id is None


def test_a_worker_that_needs_nothing_reserves_nothing() -> None:
    assert reservations(fleet([A], [wish("web:0")], on={"web:0": "a"}), {}) == ()


def test_a_node_without_a_capacity_has_what_the_engine_offers_there() -> None:
    found = fleet([A], [wish("web:0", NEEDS)])
    assert placed(found) == {}
    offer = NodeOffered(engine_node="10.0.0.1", total=Resources(amounts={"cpu": 4.0}))
    assert placed(offered(found, {"10.0.0.1": offer})) == {"web:0": "a"}


def test_a_declared_capacity_is_not_replaced_by_an_offer() -> None:
    found = fleet([replace(A, capacity=Resources(amounts={"cpu": 0.5}))], [wish("web:0", NEEDS)])
    offer = NodeOffered(engine_node="10.0.0.1", total=Resources(amounts={"cpu": 4.0}))
    assert placed(offered(found, {"10.0.0.1": offer})) == {}


def test_an_agent_is_wanted_on_each_machine_of_the_engine_but_not_on_one_that_has_left() -> None:
    machines = {address: NodeOffered(engine_node=address) for address in ("10.0.0.1", "10.0.0.2", "10.0.0.3")}
    left = replace(node("b", NodeState.LEFT), engine_node="10.0.0.2")
    assert without_agent(fleet([A, left], []), machines) == ("10.0.0.3",)
    lost = replace(node("a", NodeState.LOST), engine_node="10.0.0.1")
    assert without_agent(fleet([lost, left], []), machines) == ("10.0.0.1", "10.0.0.3")
