"""Reservations as placement groups: which to make, to keep and to remove."""

from __future__ import annotations

from msgspec.structs import replace

from rekindle.actors.cluster.engine_messages import RoomClaim
from rekindle.actors.cluster.facts.nodes import Resources
from rekindle.actors.gateways.ray.link_frames import RayMachine
from rekindle.actors.gateways.ray.reservations import (
    OwnGroup,
    amounts,
    bundle,
    group_of,
    has_machine,
    name_of,
    request_of,
    settle,
    why_not,
)

CLAIM = RoomClaim(component_id="worker:web:0", epoch=7, node_id="k1", needs=Resources(amounts={"slots": 1.0}))
K1 = RayMachine(ray_id="r1", address="10.0.0.1", labels={"rekindle.node": "k1", "ray.io/node-id": "r1"})
GROUP = OwnGroup(id="g", component_id="worker:web:0", epoch=5, node_id="k1", pin="k1", bundle={"slots": 1.0})


def test_needs_are_translated_to_the_names_and_units_of_ray() -> None:
    assert bundle({"cpu": 0.5, "memory_mb": 100.0, "slots": 2.0, "gpu": 0.0}) == {
        "CPU": 0.5,
        "memory": 100.0 * 1024 * 1024,
        "slots": 2.0,
    }
    resources = {"CPU": 2.0, "memory": 3.0 * 1024 * 1024, "object_store_memory": 9.0, "node:10.0.0.1": 1.0}
    assert amounts(resources) == {"cpu": 2.0, "memory_mb": 3.0}


def test_a_name_says_what_a_group_is_for() -> None:
    request = request_of(CLAIM, [K1])
    assert request is not None
    assert request.selector == {"rekindle.node": "k1"}
    row = {
        "placement_group_id": "g",
        "name": name_of("prod", request, "s-1"),
        "bundles": {0: {"slots": 1.0}},
        "state": "CREATED",
        "stats": {"scheduling_state": "FINISHED"},
    }
    assert group_of("prod", row) == replace(GROUP, epoch=7, is_created=True, scheduling="FINISHED")
    assert group_of("other", row) is None
    assert group_of("prod", row | {"state": "REMOVED"}) is None
    assert group_of("prod", row | {"name": "of a user of Ray"}) is None


def test_ray_cannot_judge_a_claim_on_a_node_whose_machine_it_does_not_have() -> None:
    assert has_machine(CLAIM, [K1])
    assert not has_machine(CLAIM, [])
    assert has_machine(replace(CLAIM, node_id=None), [])


def test_a_machine_that_rekindle_has_not_started_is_found_by_its_address() -> None:
    machine = replace(K1, labels={"ray.io/node-id": "r1"})
    request = request_of(replace(CLAIM, engine_node="10.0.0.1"), [machine])
    assert request is not None
    assert (request.pin, request.selector) == ("r1", {"ray.io/node-id": "r1"})
    assert request_of(replace(CLAIM, engine_node="10.0.0.2"), [machine]) is None


def test_a_reservation_is_kept_when_its_worker_has_begun_a_later_epoch() -> None:
    found = settle([GROUP], [CLAIM], (K1,))
    assert (found.make, found.remove, dict(found.kept)) == ((), (), {"worker:web:0": "g"})


def test_a_reservation_that_leaked_is_removed() -> None:
    leaked = replace(GROUP, id="leaked", component_id="worker:gone:0")
    doubled = replace(GROUP, id="doubled", epoch=4)
    elsewhere = replace(GROUP, id="elsewhere", node_id="k2", pin="k2")
    found = settle([GROUP, leaked, doubled, elsewhere], [CLAIM], (K1,))
    assert sorted(found.remove) == ["doubled", "elsewhere", "leaked"]


def test_one_claim_leaves_the_reservations_of_other_workers_alone() -> None:
    other = replace(GROUP, id="other", component_id="worker:web:1")
    demand = replace(GROUP, id="demand", node_id="-", pin="-")
    found = settle([other, demand], [CLAIM], (K1,), all_=False)
    assert (len(found.make), found.remove) == (1, ("demand",))


def test_a_changed_need_and_a_machine_of_another_identity_need_a_new_reservation() -> None:
    more = replace(CLAIM, needs=Resources(amounts={"slots": 2.0}))
    assert settle([GROUP], [more], (K1,)).remove == ("g",)
    former = replace(GROUP, pin="r0")
    machine = replace(K1, labels={"ray.io/node-id": "r1"})
    found = settle([former], [replace(CLAIM, engine_node="10.0.0.1")], (machine,))
    assert (found.remove, [each.pin for each in found.make]) == (("g",), ["r1"])


def test_a_reservation_on_a_machine_that_is_away_stays() -> None:
    found = settle([GROUP], [CLAIM], ())
    assert (found.make, found.remove) == ((), ())


def test_demand_is_tied_to_no_machine_but_to_labels() -> None:
    demand = replace(CLAIM, node_id=None, labels={"disk": "ssd"})
    (request,) = settle([], [demand], (K1,)).make
    assert (request.pin, request.selector) == ("-", {"disk": "ssd"})


def test_a_claim_is_denied_when_ray_has_looked_for_room_long_enough() -> None:
    waiting = replace(GROUP, scheduling="NO_RESOURCES")
    assert why_not(waiting, 0.1) is None
    assert why_not(waiting, 1.0) == "Ray has no room for slots=1 (NO_RESOURCES)"
    assert why_not(replace(GROUP, is_created=True), 0.0) == ""
    assert why_not(None, 0.0) == "Ray has removed the reservation"
