"""Counters follow the worker: a sum over its tenures."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rekindle.actors.cluster.facts.tenures import Tenure, TenureEnd
from rekindle.actors.cluster.rules.tenure_counters import carried, late_restarts, merged


def a_tenure(epoch: int, restarts: int = 0, **fields: object) -> Tenure:
    return replace(Tenure(component_id="w", epoch=epoch, node_id="n", restarts=restarts), **fields)


def test_four_crashes_on_one_node_leave_one_of_five_on_the_next() -> None:
    first = a_tenure(1, 4, streak=4, last_restart_ms=900, recent_deaths_ms=(1, 2, 3, 4))
    known = carried([first, a_tenure(2, streak=4)])
    assert (known.restart_count, known.streak_count, known.last_restart_wall_ms) == (4, 4, 900)
    assert known.recent_deaths_wall_ms == (1, 2, 3, 4)


def test_a_worker_without_tenures_begins_at_zero() -> None:
    assert carried([]).restart_count == 0


def test_the_end_of_a_tenure_counts_nothing() -> None:
    ends = [a_tenure(epoch, 1, how=how) for epoch, how in enumerate(TenureEnd, 1)]
    assert carried(ends).restart_count == len(TenureEnd)


def test_what_was_refunded_does_not_count() -> None:
    assert carried([a_tenure(1, 4, refunded=3), a_tenure(2, 1)]).restart_count == 2


def test_a_failure_is_that_of_the_newest_tenure() -> None:
    failed = a_tenure(1, 5, failed_at_wall_ms=7, failure_reason="5 restarts")
    assert carried([failed]).failure_reason == "5 restarts"
    assert carried([failed, a_tenure(2)]).failure_reason is None


def test_a_reset_voids_what_earlier_tenures_counted() -> None:
    assert carried([a_tenure(3, 1), a_tenure(1, 9), a_tenure(2, 2, reset_at_wall_ms=50)]).restart_count == 3


def test_late_news_of_a_returned_node_are_merged() -> None:
    lost = a_tenure(1, 2, ended_ms=100, how=TenureEnd.LOST)
    late = a_tenure(1, 4, streak=4, noted=9, ended_ms=90, how=TenureEnd.FENCED, last_restart_ms=80)
    after = merged(lost, late)
    assert (after.restarts, after.last_restart_ms) == (4, 80)
    assert (after.ended_ms, after.how) == (100, TenureEnd.LOST)


def test_news_that_arrive_in_the_wrong_order_take_nothing_back() -> None:
    alive, failed = a_tenure(1, 3, noted=7), a_tenure(1, 3, noted=8, failed_at_wall_ms=50)
    assert merged(merged(None, failed), alive).failed_at_wall_ms == 50


def test_a_refund_is_not_undone_by_the_news_of_the_node() -> None:
    assert merged(a_tenure(1, 4, refunded=3), a_tenure(1, 5)).refunded == 3


def test_news_from_before_a_reset_do_not_count() -> None:
    reset, before = a_tenure(1, 0, noted=4, reset_at_wall_ms=50), a_tenure(1, 9, noted=6)
    assert merged(reset, before).restarts == 0
    assert merged(before, reset).restarts == 0
    assert merged(reset, a_tenure(1, 2, noted=7, reset_at_wall_ms=50)).restarts == 2


@given(st.permutations([a_tenure(1, count, streak=count, noted=count) for count in range(6)]))
def test_news_may_arrive_in_any_order_and_more_than_once(news: list[Tenure]) -> None:
    stored: Tenure | None = None
    for each in [*news, *news]:
        stored = merged(stored, each)
    assert stored is not None
    assert (stored.restarts, stored.streak) == (5, 5)


def test_only_what_a_lost_node_tells_of_a_tenure_is_late() -> None:
    lost = a_tenure(1, 2, how=TenureEnd.LOST)
    assert late_restarts(lost, merged(lost, a_tenure(1, 5, noted=9))) == 3
    assert late_restarts(lost, merged(lost, lost)) == 0
    assert late_restarts(a_tenure(1, 2), a_tenure(1, 5)) == 0
    assert late_restarts(None, a_tenure(1, 5)) == 0
