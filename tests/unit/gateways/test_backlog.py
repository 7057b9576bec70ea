"""What waits for a NATS server: bounded, in order, and nothing skipped unnoticed."""

from __future__ import annotations

from rekindle.actors.facts.records import EventRecord
from rekindle.actors.gateways.nats.backlog import Backlog


def record(number: int) -> EventRecord:
    return EventRecord(id=number, at_wall_ms=0, type="worker_started", component_id="w", payload="{}")


def filled(most: int, count: int, *, delivered: int = 0, newest: int = 0) -> Backlog:
    backlog = Backlog(most, delivered=delivered, newest=newest)
    for number in range(newest + 1, newest + count + 1):
        backlog.add(record(number))
    return backlog


def ids(backlog: Backlog, limit: int = 10) -> list[int] | None:
    found = backlog.next(limit)
    return None if found is None else [each.id for each in found]


def test_events_come_in_order_and_stay_until_they_are_settled() -> None:
    backlog = filled(10, 3)
    assert ids(backlog, 2) == ids(backlog, 2) == [1, 2]
    backlog.settle(2)
    assert (ids(backlog), backlog.waiting, backlog.dropped) == ([3], 1, 0)


def test_what_finds_no_room_is_missing_until_it_is_read_elsewhere() -> None:
    backlog = filled(3, 5)
    assert (ids(backlog), backlog.dropped, backlog.waiting) == (None, 2, 5)
    backlog.settle(2)
    assert ids(backlog) == [3, 4, 5]


def test_what_was_dropped_can_be_skipped() -> None:
    backlog = filled(3, 5)
    backlog.skip_dropped()
    assert (ids(backlog), backlog.waiting) == ([3, 4, 5], 3)


def test_what_a_former_run_left_is_missing_until_it_is_read_elsewhere() -> None:
    backlog = filled(10, 2, delivered=4, newest=7)
    assert (ids(backlog), backlog.waiting) == (None, 5)
    backlog.settle(7)
    assert ids(backlog) == [8, 9]


def test_what_is_delivered_already_is_not_counted_as_dropped() -> None:
    backlog = filled(2, 2)
    backlog.settle(2)
    for number in (3, 4):
        backlog.add(record(number))
    assert (ids(backlog), backlog.dropped) == ([3, 4], 0)
