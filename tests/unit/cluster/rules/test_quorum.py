"""Majorities: a node that goes on is never declared lost by the same list of members."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rekindle.actors.cluster.rules.quorum import majority, may_be_declared_lost, may_go_on

NODES = "nabcdef"
MEMBERS = st.sets(st.sampled_from(NODES[1:])).map(lambda others: frozenset(others | {"n"}))


def test_a_majority_is_more_than_half() -> None:
    assert [majority(count) for count in (1, 2, 3, 4, 5)] == [1, 2, 2, 3, 3]


def test_one_node_alone_goes_on_and_is_never_declared_lost() -> None:
    assert may_go_on("n", [("n",)], ())
    assert not may_be_declared_lost("n", ("n",), ("a", "b"))


def test_of_two_nodes_each_needs_the_other() -> None:
    assert not may_go_on("n", [("n", "a")], ())
    assert may_go_on("n", [("n", "a")], ("a",))
    assert may_be_declared_lost("n", ("n", "a"), ("a",))


def test_a_node_does_not_testify_against_itself() -> None:
    assert may_be_declared_lost("n", ("n", "a", "b"), ("a", "b"))
    assert not may_be_declared_lost("n", ("n", "a", "b"), ("n", "b"))


def test_without_any_list_a_node_does_not_go_on() -> None:
    assert not may_go_on("n", [], ("a", "b"))


@given(members=MEMBERS, split=st.sets(st.sampled_from(NODES[1:])), witnesses=st.sets(st.sampled_from(NODES)))
def test_a_node_that_goes_on_is_not_declared_lost(
    members: frozenset[str], split: set[str], witnesses: set[str]
) -> None:
    promised = split
    testified = witnesses - promised
    goes_on = may_go_on("n", [members], promised)
    assert not (goes_on and may_be_declared_lost("n", members, testified))


@given(members=MEMBERS, promised=st.sets(st.sampled_from(NODES[1:])))
def test_if_all_others_testified_or_promised_one_of_the_two_is_possible_for_an_odd_list(
    members: frozenset[str], promised: set[str]
) -> None:
    if len(members) % 2 == 0 or len(members) == 1:
        return
    testified = members - promised - {"n"}
    assert may_go_on("n", [members], promised) != may_be_declared_lost("n", members, testified)
