"""One node's lease: when its right ends, what it says in a renewal, and when its life is over."""

from __future__ import annotations

import pytest

from rekindle.actors.cluster.facts.nodes import NodeState
from rekindle.actors.cluster.rules.lease import (
    ends_at,
    is_away,
    latest_testimony_ms,
    may_run,
    possible_members,
    refused,
    renewal,
    renewed,
    terms,
)

from ..leases import DATABASE_MS, T, a_lease, a_new_life, a_refusal, the_answer


def test_the_durations_are_in_proportion_to_the_lease() -> None:
    assert (T.lease_s, T.renew_s, T.margin_s, T.promise_s, T.validity_s) == (3.0, 0.5, 0.5, 2.0, 1.0)
    assert terms(30.0).renew_s == 5.0


def test_a_node_that_has_joined_has_no_right_before_its_first_renewal_is_answered() -> None:
    lease, request = renewal(a_new_life(), T, 0.1)
    assert ends_at(lease) is None
    assert not may_run(lease, 0.1)
    assert may_run(renewed(lease, T, the_answer(request, 0.2), 0.3), 0.3)


def test_the_first_renewal_of_a_node_lists_the_members_that_its_join_found() -> None:
    _, request = renewal(a_new_life(living=("a", "b", "n")), T, 0.1)
    assert request.members == ("a", "b", "n")
    _, alone = renewal(a_new_life(), T, 0.1)
    assert alone.members == ("n",)


def test_the_right_is_counted_from_when_the_renewal_was_sent() -> None:
    lease, request = renewal(a_new_life(), T, 1.0)
    lease = renewed(lease, T, the_answer(request, 1.4), 1.8)
    assert ends_at(lease) == 3.5
    assert may_run(lease, 3.49)
    assert not may_run(lease, 3.5)


def test_an_answer_that_arrives_after_that_to_a_later_renewal_changes_nothing() -> None:
    lease, first = renewal(a_new_life(), T, 0.0)
    lease, second = renewal(lease, T, 0.5)
    lease = renewed(lease, T, the_answer(second, 0.6), 0.6)
    assert renewed(lease, T, the_answer(first, 0.1), 0.9) == lease


def test_a_renewal_may_not_be_applied_later_than_its_validity() -> None:
    lease = a_lease(5.0)
    _, request = renewal(lease, T, 5.5)
    assert request.not_after_ms == DATABASE_MS + 5_500 + 1_000


def test_numbers_continue_after_those_of_the_former_life() -> None:
    _, request = renewal(a_new_life(renewals=41), T, 0.0)
    assert request.number == 42


# ── testimony ────────────────────────────────────────────────────────────────────────────


def test_a_new_life_does_not_testify_for_as_long_as_a_former_one_may_have_promised() -> None:
    lease = a_new_life(began=0.0)
    for step in range(4):
        lease, request = renewal(lease, T, step / 2)
        assert not request.testify
        lease = renewed(lease, T, the_answer(request, step / 2), step / 2)
    assert renewal(lease, T, 2.0)[1].testify


def test_a_node_whose_database_is_away_renews_without_testifying() -> None:
    lease = a_lease(5.0)
    lease, before = renewal(lease, T, 6.0)
    _, after = renewal(lease, T, 6.1)
    assert (before.testify, after.testify) == (True, False)
    assert is_away(lease, T, 6.1)


def test_a_testimony_counts_from_when_it_is_sent_until_it_is_answered() -> None:
    lease = a_lease(5.0)
    assert latest_testimony_ms(lease) == DATABASE_MS + 5_000
    lease, request = renewal(lease, T, 5.5)
    assert latest_testimony_ms(lease) == request.not_after_ms
    lease = renewed(lease, T, the_answer(request, 5.6), 5.7)
    assert latest_testimony_ms(lease) == DATABASE_MS + 5_600


def test_a_refused_testimony_was_none() -> None:
    lease, request = renewal(a_lease(5.0), T, 5.5)
    lease = refused(lease, a_refusal(request, NodeState.UP), 5.6)
    assert latest_testimony_ms(lease) == DATABASE_MS + 5_000


# ── lists of members ─────────────────────────────────────────────────────────────────────


def test_the_row_may_hold_the_list_of_every_renewal_that_was_not_answered() -> None:
    lease = a_lease(5.0, living=("n", "a", "b"))
    lease, request = renewal(lease, T, 5.5)
    lease = renewed(lease, T, the_answer(request, 5.5, living=("n", "a")), 5.5)
    lease, _ = renewal(lease, T, 6.0)
    assert set(possible_members(lease)) == {("n", "a", "b"), ("n", "a")}


def test_an_outage_of_an_hour_keeps_few_renewals_in_mind() -> None:
    lease = a_lease(5.0)
    for step in range(7_200):
        lease, _ = renewal(lease, T, 5.5 + step / 2)
    assert len(lease.pending) < 12


def test_a_list_that_may_be_stored_is_kept_in_mind_through_an_outage() -> None:
    lease, request = renewal(a_lease(5.0), T, 5.5)
    lease = renewed(lease, T, the_answer(request, 5.5, living=("n", "a")), 5.5)
    for step in range(100):
        lease, _ = renewal(lease, T, 6.0 + step / 2)
    assert set(possible_members(lease)) == {("n", "a", "b"), ("n", "a")}


# ── the end of a life ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("state", "incarnation", "why"),
    [
        (None, 7, "the database knows no such node"),
        (NodeState.LOST, 7, "it is lost"),
        (NodeState.LEFT, 7, "it is lost"),
        (NodeState.UP, 8, "a later life of this node has joined"),
    ],
)
def test_a_node_that_is_lost_or_replaced_has_no_right(
    state: NodeState | None, incarnation: int, why: str
) -> None:
    lease, request = renewal(a_lease(5.0), T, 5.5)
    lease = refused(lease, a_refusal(request, state, incarnation), 5.6)
    assert lease.over == why
    assert not may_run(lease, 5.6)


def test_a_life_that_is_over_gets_no_right_by_an_answer_that_was_under_way() -> None:
    lease, first = renewal(a_lease(5.0), T, 5.5)
    lease, second = renewal(lease, T, 6.0)
    lease = refused(lease, a_refusal(second), 6.1)
    assert not may_run(renewed(lease, T, the_answer(first, 5.6), 6.2), 6.2)


def test_a_renewal_that_was_late_ends_nothing_and_tells_the_time() -> None:
    lease, request = renewal(a_lease(5.0), T, 5.5)
    lease = refused(lease, a_refusal(request, NodeState.UP), 5.6)
    assert may_run(lease, 5.6)
    assert lease.database_ms == DATABASE_MS
