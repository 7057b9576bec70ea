"""Promises: who gives one, and what a majority of them is worth."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rekindle.actors.cluster.facts.promises import PromiseAsked, PromiseGot
from rekindle.actors.cluster.rules.lease import Lease, ends_at, may_run, may_testify, renewal, renewed
from rekindle.actors.cluster.rules.promise_exchange import answered, ask, asks, got

from ..leases import DATABASE_MS, T, a_lease, a_new_life, the_answer


def a_request(member: str, lease_until_s: float = 8.0, for_s: float = 2.0) -> PromiseAsked:
    return PromiseAsked(
        asker="n",
        incarnation=7,
        member=member,
        nonce="once",
        lease_until_ms=DATABASE_MS + round(lease_until_s * 1000),
        for_s=for_s,
    )


def an_answer(member: str, nonce: str = "once", granted: bool = True, asker: str = "n") -> PromiseGot:
    return PromiseGot(member=member, member_incarnation=7, asker=asker, nonce=nonce, granted=granted)


def cut_off(at: float, lease: Lease | None = None) -> Lease:
    """A lease whose renewals got no answer since second 5."""
    lease = lease or a_lease(5.0)
    step = 5.5
    while step <= at:
        lease, _ = renewal(lease, T, step)
        step += T.renew_s
    return lease


# ── asking ───────────────────────────────────────────────────────────────────────────────


def test_a_node_asks_as_soon_as_two_renewals_are_not_answered() -> None:
    assert not asks(cut_off(6.0), T, 6.0)
    assert asks(cut_off(6.0), T, 6.01)


def test_it_asks_every_member_of_every_list_that_the_database_may_hold() -> None:
    lease, request = renewal(a_lease(5.0), T, 5.5)
    lease = renewed(lease, T, the_answer(request, 5.5, living=("n", "a", "c")), 5.5)
    lease, _ = renewal(lease, T, 6.0)
    _, _, requests = ask(lease, (), T, "once", 7.0)
    assert [each.member for each in requests] == ["a", "b", "c"]


def test_a_majority_of_promises_counts_from_when_they_were_asked() -> None:
    lease, rounds, _ = ask(cut_off(6.5), (), T, "once", 6.5)
    assert ends_at(lease) == 7.5
    lease, rounds = got(lease, rounds, T, an_answer("a"))
    assert ends_at(lease) == 8.0
    assert may_run(lease, 7.9)


def test_promises_of_two_rounds_are_not_added_up() -> None:
    lease = replace(
        cut_off(6.5), members=("n", "a", "b", "c", "d"), living=("n", "a", "b", "c", "d"), pending=()
    )
    lease, rounds, _ = ask(lease, (), T, "first", 6.5)
    lease, rounds, _ = ask(lease, rounds, T, "second", 7.0)
    lease, rounds = got(lease, rounds, T, an_answer("a", "first"))
    lease, rounds = got(lease, rounds, T, an_answer("b", "second"))
    assert lease.held_until is None
    assert got(lease, rounds, T, an_answer("b", "first"))[0].held_until == 8.0


def test_a_majority_of_one_of_two_possible_lists_is_not_enough() -> None:
    lease, request = renewal(a_lease(5.0, living=("n", "a", "b", "c", "d")), T, 5.5)
    lease = renewed(lease, T, the_answer(request, 5.5, living=("n", "a", "b")), 5.5)
    lease, _ = renewal(lease, T, 6.0)
    lease, rounds, _ = ask(lease, (), T, "once", 7.0)
    lease, rounds = got(lease, rounds, T, an_answer("a"))
    assert lease.held_until is None
    assert got(lease, rounds, T, an_answer("b"))[0].held_until == 8.5


@pytest.mark.parametrize(
    "answer",
    [
        an_answer("a", nonce="an old one"),
        an_answer("a", granted=False),
        an_answer("a", asker="x"),
        an_answer("z"),
    ],
)
def test_an_answer_that_is_replayed_refused_or_foreign_extends_nothing(answer: PromiseGot) -> None:
    lease, rounds, _ = ask(cut_off(6.5), (), T, "once", 6.5)
    assert got(lease, rounds, T, answer)[0].held_until is None


def test_a_node_alone_is_its_own_majority() -> None:
    lease, _, requests = ask(cut_off(6.5, a_lease(5.0, living=("n",))), (), T, "once", 6.5)
    assert requests == ()
    assert lease.held_until == 8.0


# ── promising ────────────────────────────────────────────────────────────────────────────


def test_a_member_that_is_away_too_promises_and_does_not_testify() -> None:
    member = cut_off(7.0, a_lease(5.0, "a"))
    member, answer = answered(member, T, a_request("a"), 7.0)
    assert answer.granted
    lease, request = renewal(member, T, 8.0)
    near = renewed(lease, T, the_answer(request, 8.0), 8.0)
    assert not may_testify(near, T, 8.9)
    assert may_testify(near, T, 9.0)


@pytest.mark.parametrize(
    ("member", "asked", "why"),
    [
        (a_lease(7.0, "a"), a_request("a"), "it reaches the database"),
        (a_new_life("a"), a_request("a"), "it has not renewed its own lease since it started"),
        (cut_off(7.0, a_lease(5.0, "a")), a_request("b"), "this node is a"),
        (cut_off(7.0, a_lease(5.0, "a")), a_request("a", for_s=9.0), "a promise lasts 2 s at most"),
        (
            cut_off(7.0, a_lease(5.0, "a")),
            a_request("a", lease_until_s=6.9),
            "it may have testified after the end of that lease",
        ),
    ],
)
def test_a_member_refuses_with_a_reason(member: Lease, asked: PromiseAsked, why: str) -> None:
    after, answer = answered(member, T, asked, 7.0)
    assert (answer.granted, answer.reason) == (False, why)
    assert after.promised_until is None


def test_a_testimony_that_may_still_be_applied_counts_as_one() -> None:
    # Its renewal of second 6 was sent in good faith; the database may apply it up to second 7.
    member = cut_off(7.0, a_lease(5.0, "a"))
    assert not answered(member, T, a_request("a", lease_until_s=6.99), 7.0)[1].granted
    assert answered(member, T, a_request("a", lease_until_s=7.0), 7.0)[1].granted


def test_a_later_promise_never_shortens_an_earlier_one() -> None:
    member = cut_off(7.0, a_lease(5.0, "a"))
    member, _ = answered(member, T, a_request("a"), 7.0)
    member, _ = answered(member, T, a_request("a", for_s=0.5), 7.1)
    assert member.promised_until == 9.0
