"""Which workers leave their nodes: drains, stops, removals and rebalancing."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rekindle.actors.cluster.facts.nodes import NodeState
from rekindle.actors.cluster.facts.tenures import TenurePhase
from rekindle.actors.cluster.facts.wishes import Wanted, Wish
from rekindle.actors.cluster.rules.fleet import Fleet
from rekindle.actors.cluster.rules.placement import plan
from rekindle.actors.cluster.rules.worker_moves import (
    Departure,
    all_moves,
    departure,
    inhabitants,
    rebalancing,
    releases,
    removals,
)
from rekindle.actors.spec.deployment.place_policy import PlacePolicy

from ..fleets import NOW_MS, copies_of, fleet, node, rebalanced, wish, with_changes

A, B, C = node("a"), node("b"), node("c")
DRAINING = node("a", NodeState.DRAINING)
SSD = node("c", labels={"disk": "ssd"})
THREE_ON_A = {"web:0": "a", "web:1": "a", "web:2": "a"}


def released(found: Fleet) -> list[str]:
    return [each.component_id for each in releases(found)]


@pytest.mark.parametrize("state", [NodeState.UP, NodeState.CORDONED, NodeState.SUSPECT])
def test_a_node_that_does_not_drain_keeps_its_workers(state: NodeState) -> None:
    assert released(fleet([node("a", state), B], copies_of("web", 3), THREE_ON_A)) == []


def test_a_drain_takes_one_copy_of_a_group_at_a_time() -> None:
    found = fleet([DRAINING, B], [*copies_of("web", 3), wish("db:0")], {**THREE_ON_A, "db:0": "a"})
    assert released(found) == ["db:0", "web:0"]
    assert released(with_changes(found, releases(found))) == []


def test_a_drain_takes_as_many_at_a_time_as_must_not_stay_healthy() -> None:
    found = fleet([DRAINING, B], copies_of("web", 3, min_healthy=1), THREE_ON_A)
    assert released(found) == ["web:0", "web:1"]


def test_a_drain_whose_deadline_has_passed_takes_all_that_are_left() -> None:
    found = fleet([replace(DRAINING, drain_until_ms=NOW_MS), B], copies_of("web", 3), THREE_ON_A)
    assert released(found) == ["web:0", "web:1", "web:2"]
    soon = replace(DRAINING, drain_until_ms=NOW_MS + 1)
    assert released(replace(found, nodes={**found.nodes, "a": soon})) == ["web:0"]


def test_a_rebalancing_shows_all_of_its_moves_and_leaves_a_group_that_misses_a_copy() -> None:
    found = fleet([A, B], copies_of("web", 4), dict.fromkeys(("web:0", "web:1", "web:2", "web:3"), "a"))
    assert [(each.component_id, each.target) for each in all_moves(found)] == [("web:0", "b"), ("web:1", "b")]
    missing = fleet([A, B], copies_of("web", 4), THREE_ON_A)
    assert all_moves(missing) == ()


def test_a_copy_that_is_on_its_way_counts_as_absent() -> None:
    found = fleet([DRAINING, B], copies_of("web", 3), THREE_ON_A, {"web:0": TenurePhase.RELEASING})
    assert released(found) == []


def test_a_group_that_must_stay_whole_moves_one_by_one() -> None:
    found = fleet([DRAINING, B], copies_of("web", 3, min_healthy=3), THREE_ON_A)
    assert released(found) == ["web:0"]


def test_copies_of_a_worker_that_runs_everywhere_do_not_wait_for_each_other() -> None:
    copies = [wish(f"logs:{name}", PlacePolicy(everywhere=True), pinned=name) for name in "ab"]
    found = fleet([DRAINING, node("b", NodeState.DRAINING)], copies, {"logs:a": "a", "logs:b": "b"})
    assert released(found) == ["logs:a", "logs:b"]


def test_a_drain_goes_on_until_every_worker_has_another_node() -> None:
    found = fleet([DRAINING, B, C], copies_of("web", 3), THREE_ON_A)
    ids = inhabitants(found, DRAINING)
    assert ids == {"web:0", "web:1", "web:2"}
    for count in range(3, 0, -1):
        found = with_changes(found, releases(found))
        assert len(departure(found, DRAINING, ids).under_way) == count  # a released one is not placed yet
        found = with_changes(found, plan(found).places)
    assert departure(found, DRAINING, ids) == Departure(frozenset(), {})
    assert Counter(each.node_id for each in found.assignments.values()) == {"b": 2, "c": 1}


def test_a_worker_that_no_node_takes_has_departed_when_the_placement_has_said_why() -> None:
    found = fleet([DRAINING, B], [wish("web:0", PlacePolicy(labels={"disk": "ssd"}))], {"web:0": "a"})
    ids = inhabitants(found, DRAINING)
    found = with_changes(found, releases(found))
    assert departure(found, DRAINING, ids).under_way == ids
    noted = with_changes(found, plan(found).unplaced)
    why = "a: draining; b: its label disk is not set, not ssd"
    assert departure(noted, DRAINING, ids) == Departure(frozenset(), {"web:0": why})
    # A node that fits joins: the worker is under way again, whatever was noted before.
    assert departure(replace(noted, nodes={**noted.nodes, "c": SSD}), DRAINING, ids).under_way == ids


def test_a_worker_for_which_the_engine_has_no_room_has_departed_too() -> None:
    found = with_changes(fleet([DRAINING, B], copies_of("web", 1), {"web:0": "a"}), ())
    ids = inhabitants(found, DRAINING)
    found = with_changes(found, releases(found))
    noted = with_changes(found, plan(found, [("web:0", "b")]).unplaced)
    assert departure(noted, DRAINING, ids).unplaced == {
        "web:0": "a: draining; b: the engine has no room there"
    }


def test_what_was_released_before_the_look_is_waited_for_unless_it_is_known_to_fit_nowhere() -> None:
    found = fleet([DRAINING, B], copies_of("web", 2), former={"web:0": "a", "web:1": "b"})
    assert inhabitants(found, DRAINING) == {"web:0"}
    nowhere = with_changes(replace(found, nodes={"a": DRAINING}), ())
    nowhere = with_changes(nowhere, plan(nowhere).unplaced)
    assert inhabitants(nowhere, DRAINING) == frozenset()


def test_copies_that_belong_to_the_node_and_workers_that_should_not_run_have_departed_when_released() -> None:
    own = wish("logs:a", PlacePolicy(everywhere=True), pinned="a")
    found = fleet([DRAINING, B], [own, wish("web:0", wanted=Wanted.STOP)], {"logs:a": "a", "web:0": "a"})
    ids = inhabitants(found, DRAINING)
    assert departure(found, DRAINING, ids).under_way == {"logs:a", "web:0"}
    assert departure(with_changes(found, releases(found)), DRAINING, ids) == Departure(frozenset(), {})


@pytest.mark.parametrize(
    ("wanted", "why"), [(Wanted.STOP, "it was stopped"), (Wanted.GONE, "it was removed")]
)
def test_a_worker_that_should_not_run_is_released_with_the_reason(wanted: Wanted, why: str) -> None:
    found = fleet([A], [wish("web:0", wanted=wanted)], {"web:0": "a"})
    assert [each.reason for each in releases(found)] == [why]


def test_a_paused_worker_keeps_its_place() -> None:
    assert released(fleet([A], [wish("web:0", wanted=Wanted.PAUSE)], {"web:0": "a"})) == []


def test_a_worker_without_a_wish_is_released() -> None:
    found = fleet([A], [wish("web:0")], {"web:0": "a"})
    assert released(replace(found, wishes={})) == ["web:0"]


def test_a_wish_is_removed_when_its_worker_was_given_back() -> None:
    gone = wish("web:0", wanted=Wanted.GONE)
    assert removals(fleet([A], [gone], {"web:0": "a"}, {"web:0": TenurePhase.RELEASING})) == ()
    assert [each.component_id for each in removals(fleet([A], [gone]))] == ["web:0"]


# ── rebalancing ──────────────────────────────────────────────────────────────────────────


def test_a_rebalancing_moves_one_copy_of_a_group_at_a_time() -> None:
    found = fleet(
        [A, B], [*copies_of("web", 3), *copies_of("api", 2)], {**THREE_ON_A, "api:0": "a", "api:1": "a"}
    )
    moves = rebalancing(found)
    assert [(move.component_id, move.source, move.target) for move in moves] == [
        ("api:0", "a", "b"),
        ("web:0", "a", "b"),
    ]
    assert moves[0].reason == "a has more copies of api than b"


def test_an_even_fleet_is_left_alone() -> None:
    assert rebalancing(fleet([A, B], copies_of("web", 2), {"web:0": "a", "web:1": "b"})) == ()
    assert rebalancing(fleet([A, B], copies_of("web", 3), {"web:0": "a", "web:1": "b", "web:2": "a"})) == ()


def test_packed_and_pinned_workers_are_not_rebalanced() -> None:
    packed = copies_of("job", 2, PlacePolicy(pack=True))
    pinned = [wish("logs:0", pinned="a"), wish("logs:1", pinned="a")]
    on = dict.fromkeys(["job:0", "job:1", "logs:0", "logs:1"], "a")
    assert rebalancing(fleet([A, B], [*packed, *pinned], on)) == ()


def test_a_rebalancing_respects_what_a_node_does_not_take() -> None:
    assert rebalancing(fleet([A, node("b", NodeState.CORDONED)], copies_of("web", 3), THREE_ON_A)) == ()


GROUPS = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(
    lambda sizes: [each for index, size in enumerate(sizes) for each in copies_of(f"g{index}", size)]
)


@settings(max_examples=100, deadline=None)
@given(wishes=GROUPS, data=st.data())
def test_a_rebalancing_ends_with_even_groups(wishes: list[Wish], data: st.DataObject) -> None:
    on = {each.component_id: data.draw(st.sampled_from("abc")) for each in wishes}
    found, _ = rebalanced(fleet([A, B, C], wishes, on))
    for group in {each.group for each in wishes}:
        counts = Counter(
            found.assignments[each.component_id].node_id for each in wishes if each.group == group
        )
        spread = [counts[name] for name in "abc"]
        assert max(spread) - min(spread) <= 1
