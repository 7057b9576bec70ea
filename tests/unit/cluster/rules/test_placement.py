"""Where a worker starts, and why it does not start anywhere."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rekindle.actors.cluster.facts.nodes import Node, NodeState
from rekindle.actors.cluster.facts.tenures import TenurePhase
from rekindle.actors.cluster.facts.wishes import Wanted, Wish
from rekindle.actors.cluster.rules.placement import copies, plan
from rekindle.actors.spec.deployment.place_policy import PlacePolicy

from ..fleets import copies_of, fleet, node, placed, wish, with_changes

A, B, C = node("a"), node("b"), node("c")


def reasons(nodes: list[Node], one: Wish, **others: Any) -> str:
    found = fleet(nodes, [one, *others.pop("wishes", [])], **others)
    (note,) = plan(found).unplaced
    assert note.component_id == one.component_id
    return note.reason


def test_copies_are_spread_evenly_over_the_nodes() -> None:
    found = placed(fleet([A, B, C], copies_of("web", 6)))
    assert Counter(found.values()) == {"a": 2, "b": 2, "c": 2}


def test_copies_are_spread_over_the_values_of_a_label_first() -> None:
    nodes = [
        node("a", labels={"zone": "x"}),
        node("b", labels={"zone": "x"}),
        node("c", labels={"zone": "y"}),
    ]
    found = placed(fleet(nodes, copies_of("web", 4, PlacePolicy(spread="zone"))))
    assert Counter(found.values()) == {"a": 1, "b": 1, "c": 2}


def test_packed_copies_fill_one_node_before_the_next() -> None:
    nodes = [node("a", cpu=2), node("b", cpu=2)]
    found = placed(fleet(nodes, copies_of("job", 3, PlacePolicy(pack=True, needs={"cpu": 1}))))
    assert Counter(found.values()) == {"a": 2, "b": 1}


def test_a_worker_that_needs_much_is_placed_before_those_that_need_little() -> None:
    big = wish("big:0", PlacePolicy(needs={"cpu": 4}))
    small = copies_of("small", 4, PlacePolicy(needs={"cpu": 1}))
    found = fleet([node("a", cpu=4), node("b", cpu=4)], [*small, big])
    assert len(placed(found)) == 5


def test_a_worker_returns_to_where_it_was_if_that_is_as_good() -> None:
    assert placed(fleet([A, B], [wish("web:0")], former={"web:0": "b"})) == {"web:0": "b"}


def test_a_worker_goes_where_an_operator_wants_it() -> None:
    found = fleet([A, B], copies_of("web", 2), on={"web:1": "b"})
    aimed = replace(found.assignments["web:0"], target="b")
    assert placed(replace(found, assignments={**found.assignments, "web:0": aimed})) == {"web:0": "b"}


def test_nothing_moves_because_a_node_joins() -> None:
    found = fleet([A], copies_of("web", 4))
    found = with_changes(found, plan(found).places)
    assert plan(replace(found, nodes={**found.nodes, "b": B})).places == ()


def test_a_placement_names_the_epoch_and_the_life_that_its_author_knows() -> None:
    (place,) = plan(fleet([A], [wish("web:0")])).places
    assert (place.epoch, place.incarnation) == (5, 3)


@pytest.mark.parametrize("wanted", [Wanted.STOP, Wanted.PAUSE, Wanted.GONE])
def test_a_worker_that_should_not_run_is_not_placed(wanted: Wanted) -> None:
    assert placed(fleet([A], [wish("web:0", wanted=wanted)])) == {}


def test_a_worker_that_is_being_released_is_not_placed() -> None:
    assert placed(fleet([A, B], [wish("web:0")], {"web:0": "a"}, {"web:0": TenurePhase.RELEASING})) == {}


# ── reasons ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "state", [state for state in NodeState if not state.takes_workers and state is not NodeState.LEFT]
)
def test_a_node_that_takes_no_workers_is_named_with_its_state(state: NodeState) -> None:
    assert reasons([node("k1", state)], wish("web:0")) == f"k1: {state.value}"


@pytest.mark.parametrize(
    ("one", "place", "why"),
    [
        (node("k1", fresh=False), PlacePolicy(), "k1: its lease is over"),
        (node("k1"), PlacePolicy(labels={"disk": "ssd"}), "k1: its label disk is not set, not ssd"),
        (
            node("k1", labels={"disk": "hdd"}),
            PlacePolicy(labels={"disk": "ssd"}),
            "k1: its label disk is hdd, not ssd",
        ),
        (node("k1", cpu=4), PlacePolicy(needs={"cpu": 8}), "k1: cpu: needs 8, 4 of 4 free"),
        (node("k1"), PlacePolicy(needs={"gpu": 1}), "k1: gpu: needs 1, 0 of 0 free"),
    ],
)
def test_a_worker_without_a_place_has_the_reason_of_each_node(
    one: Node, place: PlacePolicy, why: str
) -> None:
    assert reasons([one], wish("web:0", place)) == why


def test_each_node_has_a_reason_of_its_own() -> None:
    why = reasons(
        [node("k2", NodeState.SUSPECT), node("k1", cpu=1)], wish("web:0", PlacePolicy(needs={"cpu": 2}))
    )
    assert why == "k1: cpu: needs 2, 1 of 1 free; k2: suspect"


def test_without_any_node_the_reason_says_so() -> None:
    assert reasons([], wish("web:0")) == "no node has joined"


def test_what_is_reserved_on_a_node_is_not_free() -> None:
    place = PlacePolicy(needs={"cpu": 3})
    why = reasons(
        [node("k1", cpu=4)], wish("web:1", place), wishes=[wish("web:0", place)], on={"web:0": "k1"}
    )
    assert why == "k1: cpu: needs 3, 1 of 4 free"


def test_no_more_copies_than_per_node_run_on_one_node() -> None:
    place = PlacePolicy(per_node=1)
    why = reasons([node("k1")], wish("web:1", place), wishes=[wish("web:0", place)], on={"web:0": "k1"})
    assert why == "k1: has 1 copies, per_node = 1"


def test_workers_that_are_kept_apart_do_not_share_a_node_in_either_order() -> None:
    api, batch = wish("api:0", PlacePolicy(apart_from=("batch",))), wish("batch:0")
    assert reasons([node("k1")], api, wishes=[batch], on={"batch:0": "k1"}) == "k1: runs batch"
    assert "kept apart" in reasons([node("k1")], batch, wishes=[api], on={"api:0": "k1"})


def test_a_worker_does_not_return_to_a_node_that_has_just_killed_it() -> None:
    found = fleet([A, B], [wish("web:0")], died_on={"web:0": frozenset({"a"})})
    assert placed(found) == {"web:0": "b"}


def test_a_node_that_cannot_run_a_worker_does_not_get_it_again() -> None:
    found = fleet([A], [wish("web:0")])
    refused = replace(found.assignments["web:0"], refused={"a": "no program ./web"})
    (note,) = plan(replace(found, assignments={"web:0": refused})).unplaced
    assert note.reason == "a: cannot run it: no program ./web"


def test_a_node_for_which_the_engine_has_no_room_is_passed_over() -> None:
    found = fleet([A, B], [wish("web:0")])
    assert [each.node_id for each in plan(found, [("web:0", "a")]).places] == ["b"]
    assert "the engine has no room there" in plan(found, [("web:0", "a"), ("web:0", "b")]).unplaced[0].reason


def test_a_reason_that_is_known_already_is_not_written_again() -> None:
    found = fleet([node("k1", NodeState.SUSPECT)], [wish("web:0")])
    (note,) = plan(found).unplaced
    known = replace(found.assignments["web:0"], reason=note.reason)
    assert plan(replace(found, assignments={"web:0": known})).unplaced == ()


# ── everywhere ───────────────────────────────────────────────────────────────────────────


EVERYWHERE = wish("logs", PlacePolicy(everywhere=True))


def test_a_worker_of_every_node_has_a_copy_for_each() -> None:
    found = copies(fleet([A, B], [EVERYWHERE]))
    assert [(each.component_id, each.pinned, each.group) for each in found] == [
        ("logs:a", "a", "logs"),
        ("logs:b", "b", "logs"),
    ]


def test_each_copy_runs_on_its_node_only_and_the_template_nowhere() -> None:
    found = fleet([A, B], [EVERYWHERE])
    found = fleet([A, B], [EVERYWHERE, *copies(found)])
    assert placed(found) == {"logs:a": "a", "logs:b": "b"}
    assert copies(found) == ()


def test_a_copy_of_a_node_that_has_left_goes() -> None:
    found = copies(fleet([A, B], [EVERYWHERE]))
    left = fleet([A, node("b", NodeState.LEFT)], [EVERYWHERE, *found])
    assert [(each.component_id, each.wanted) for each in copies(left)] == [("logs:b", Wanted.GONE)]


def test_a_copy_of_a_lost_node_waits_for_it() -> None:
    found = copies(fleet([A, B], [EVERYWHERE]))
    lost = fleet([A, node("b", NodeState.LOST)], [EVERYWHERE, *found], on={"logs:a": "a"})
    assert copies(lost) == ()
    assert plan(lost).unplaced[0].reason == "a: this copy belongs to another node; b: lost"


def test_a_machine_that_replaces_a_lost_one_under_its_name_gets_its_copy() -> None:
    lost, replacement = node("b", NodeState.LOST), replace(node("b"), id="z")
    for nodes in ([replacement, lost], [lost, replacement]):
        (copy,) = copies(fleet(nodes, [EVERYWHERE]))
        assert (copy.component_id, copy.pinned) == ("logs:b", "z")
        assert placed(fleet(nodes, [EVERYWHERE, copy])) == {"logs:b": "z"}


def test_copies_follow_a_change_of_their_template() -> None:
    found = copies(fleet([A], [EVERYWHERE]))
    changed = replace(EVERYWHERE, spec="{}", revision=2)
    assert [each.revision for each in copies(fleet([A], [changed, *found]))] == [2]


# ── any fleet ────────────────────────────────────────────────────────────────────────────


NODES = st.lists(
    st.builds(
        lambda state, zone, cpu, fresh: (state, zone, cpu, fresh),
        st.sampled_from(NodeState),
        st.sampled_from("xy"),
        st.integers(0, 6),
        st.booleans(),
    ),
    max_size=6,
).map(
    lambda rows: [
        node(f"n{index}", state, labels={"zone": zone}, fresh=fresh, cpu=cpu)
        for index, (state, zone, cpu, fresh) in enumerate(rows)
    ]
)
PLACES = st.sampled_from(
    [
        PlacePolicy(),
        PlacePolicy(spread="zone"),
        PlacePolicy(needs={"cpu": 1.5}),
        PlacePolicy(pack=True, needs={"cpu": 0.5}),
        PlacePolicy(per_node=1, labels={"zone": "x"}),
        PlacePolicy(apart_from=("g0",)),
    ]
)
WISHES = st.lists(st.tuples(PLACES, st.integers(1, 4)), max_size=4).map(
    lambda groups: [
        each for index, (place, count) in enumerate(groups) for each in copies_of(f"g{index}", count, place)
    ]
)


@settings(max_examples=200, deadline=None)
@given(nodes=NODES, wishes=WISHES)
def test_every_placement_keeps_every_condition(nodes: list[Node], wishes: list[Wish]) -> None:
    found = fleet(nodes, wishes)
    made = plan(found)
    named = [each.component_id for each in made.places] + [each.component_id for each in made.unplaced]
    assert sorted(named) == sorted(each.component_id for each in wishes)
    on: dict[str, list[Wish]] = {each.id: [] for each in nodes}
    for place in made.places:
        one = found.nodes[place.node_id]
        assert one.state.takes_workers
        assert one.state is NodeState.UP or not on[one.id]
        assert found.is_fresh(one)
        on[one.id].append(found.wishes[place.component_id])
    for node_id, present in on.items():
        groups = Counter(each.group for each in present)
        assert sum(each.place.needs.get("cpu", 0) for each in present) <= found.nodes[node_id].capacity.of(
            "cpu"
        )
        for each in present:
            assert each.place.per_node is None or groups[each.group] <= each.place.per_node
            assert not any(groups[name] for name in each.place.apart_from if name != each.group)
            assert all(
                found.nodes[node_id].labels[name] == value for name, value in each.place.labels.items()
            )
