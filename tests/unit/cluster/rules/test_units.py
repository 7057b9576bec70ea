"""Where the workers of a group that stands and falls together go, and what a worker waits for."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rekindle.actors.cluster.facts.nodes import NodeState
from rekindle.actors.cluster.facts.tenures import Tenure, TenurePhase
from rekindle.actors.cluster.facts.wishes import Wanted, Wish
from rekindle.actors.cluster.rules.fleet import Fleet
from rekindle.actors.cluster.rules.placement import plan
from rekindle.actors.cluster.rules.worker_moves import rebalancing, releases
from rekindle.actors.spec.deployment.place_policy import PlacePolicy
from rekindle.actors.spec.worker_spec import Until

from ..fleets import fleet, node, placed, wish, with_changes

A, B, C = node("a"), node("b"), node("c")
DB, API, WEB = (
    wish("db:0", unit="shop"),
    wish("api:0", unit="shop", beside=("db:0",)),
    wish("web:0", unit="shop", beside=("api:0", "db:0")),
)
SHOP = [WEB, API, DB]
ON_A = {"db:0": "a", "api:0": "a", "web:0": "a"}


def needing(each: Wish, cpu: float) -> Wish:
    return replace(each, place=PlacePolicy(needs={"cpu": cpu}))


def reasons(found: Fleet) -> dict[str, str]:
    return {each.component_id: each.reason for each in plan(found).unplaced}


def released(found: Fleet) -> dict[str, str | None]:
    return {each.component_id: each.target for each in releases(found)}


# ── groups ───────────────────────────────────────────────────────────────────────────────


def test_the_workers_of_a_group_are_placed_together_in_their_order() -> None:
    found = fleet([A, B, C], SHOP)
    assert [each.component_id for each in plan(found).places] == ["db:0", "api:0", "web:0"]
    assert len({*placed(found).values()}) == 1


def test_a_group_goes_where_all_of_its_workers_fit() -> None:
    small, large = node("a", cpu=2), node("b", cpu=4)
    found = fleet([small, large], [needing(DB, 1), needing(API, 1), needing(WEB, 1)])
    assert {*placed(found).values()} == {"b"}
    found = fleet([small], [needing(DB, 1), needing(API, 1), needing(WEB, 1)])
    assert placed(found) == {}
    assert "0 of 2 free" in reasons(found)["db:0"]


def test_a_worker_of_a_group_follows_the_others_although_another_node_has_less_load() -> None:
    found = fleet([A, B], SHOP, {"db:0": "a", "api:0": "a"})
    assert placed(found) == {"web:0": "a"}


def test_a_worker_of_a_group_whose_node_does_not_take_it_waits_there() -> None:
    found = fleet(
        [node("a", cpu=1), node("b", cpu=9)], [DB, API, needing(WEB, 5)], {"db:0": "a", "api:0": "a"}
    )
    assert placed(found) == {}
    assert reasons(found)["web:0"] == "a: cpu: needs 5, 1 of 1 free; group shop runs there"


def test_a_group_leaves_a_draining_node_as_a_whole_and_is_placed_when_the_last_has_ended() -> None:
    found = fleet([node("a", NodeState.DRAINING), B], SHOP, ON_A)
    assert set(released(found)) == set(ON_A)
    leaving = fleet([node("a", NodeState.DRAINING), B], SHOP, {"db:0": "a"}, {"db:0": TenurePhase.RELEASING})
    assert placed(leaving) == {}
    assert placed(with_changes(leaving, releases(found))) == dict.fromkeys(ON_A, "b")


def test_an_operators_move_of_one_worker_moves_its_group() -> None:
    found = fleet([A, B, C], SHOP, ON_A, {"web:0": TenurePhase.RELEASING})
    moved = replace(found.assignments["web:0"], target="c")
    found = replace(found, assignments={**found.assignments, "web:0": moved})
    assert released(found) == {"db:0": "c", "api:0": "c"}
    given_back = replace(moved, node_id=None, phase=TenurePhase.UNPLACED)
    found = replace(found, assignments={**found.assignments, "web:0": given_back})
    assert placed(found) == {}
    after = with_changes(found, releases(found))
    after = replace(after, assignments={**after.assignments, "web:0": given_back})
    assert placed(after) == dict.fromkeys(ON_A, "c")


def test_a_group_that_the_file_has_made_of_workers_on_two_nodes_comes_together() -> None:
    assert released(fleet([A, B], SHOP, {**ON_A, "db:0": "b"})) == {"db:0": "a"}


def test_a_rebalancing_leaves_groups_where_they_are() -> None:
    assert rebalancing(fleet([A, B], SHOP, ON_A)) == ()


def test_no_group_is_placed_before_what_it_waits_for_and_the_workers_behind_wait_too() -> None:
    found = fleet(
        [A], [replace(DB, after={"vault:0": Until.READY}), API, wish("vault:0", wanted=Wanted.STOP)]
    )
    assert placed(found) == {}
    assert reasons(found) == {
        "db:0": "waits for vault:0 to be ready",
        "api:0": "waits for db:0, which is before it in its group",
    }


# ── order and tasks ──────────────────────────────────────────────────────────────────────

MIGRATE = wish("migrate:0", once=True)
APP = wish("app:0", after={"migrate:0": Until.DONE, "db:0": Until.READY})
SERVER = wish("db:0")


def test_a_worker_waits_for_others_on_whichever_nodes() -> None:
    found = fleet([A, B], [MIGRATE, APP, SERVER])
    assert set(placed(found)) == {"migrate:0", "db:0"}
    assert reasons(found) == {"app:0": "waits for migrate:0 to be done, db:0 to be ready"}


def test_a_task_that_is_done_is_given_back_and_placed_nowhere_again() -> None:
    done = replace(MIGRATE, wanted=Wanted.DONE)
    found = fleet([A, B], [done], {"migrate:0": "a"})
    assert [each.reason for each in releases(found)] == ["it is done"]
    assert placed(with_changes(found, releases(found))) == {}


def test_a_worker_starts_once_tasks_are_done_and_services_ready_under_their_epoch() -> None:
    done = replace(MIGRATE, wanted=Wanted.DONE)
    found = fleet([A, B], [done, APP, SERVER], {"db:0": "a"})
    assert reasons(found) == {"app:0": "waits for db:0 to be ready"}
    assert "app:0" in placed(_ready(found, epoch=5))
    assert placed(_ready(found, epoch=4)) == {}


def _ready(found: Fleet, epoch: int) -> Fleet:
    ready = Tenure(component_id="db:0", epoch=epoch, node_id="a", ready_ms=1)
    return replace(found, tenures={"db:0": ready})


@pytest.mark.parametrize("phase", [TenurePhase.RELEASING, TenurePhase.UNPLACED])
def test_a_service_without_a_place_is_not_ready(phase: TenurePhase) -> None:
    on = {"db:0": "a"} if phase is TenurePhase.RELEASING else {}
    found = fleet([A], [APP, SERVER, replace(MIGRATE, wanted=Wanted.DONE)], on, {"db:0": phase})
    assert "app:0" not in placed(_ready(found, epoch=5))
