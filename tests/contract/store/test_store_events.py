"""The events that every store keeps, by their numbers."""

from __future__ import annotations

from tests.contract.records import NOW, TAG, death, event

from rekindle.actors.facts.records import Lives
from rekindle.actors.ports import Store


def test_a_new_store_has_no_events(store: Store) -> None:
    page = store.events()
    assert (page.events, page.oldest, page.newest) == ((), 0, 0)
    assert store.load().last_event_id == 0


def test_events_come_back_as_they_were_stored_oldest_first(store: Store) -> None:
    kept = [event(1), event(2, type="store_recovered", component_id=None), event(3, payload='{"pid":7}')]
    store.commit(kept)
    assert list(store.events().events) == kept
    assert store.load().last_event_id == 3


def test_a_reader_goes_on_after_the_last_event_that_it_has(store: Store) -> None:
    store.commit([event(number) for number in range(1, 11)])
    page = store.events(after_id=4, limit=3)
    assert [each.id for each in page.events] == [5, 6, 7]
    assert (page.oldest, page.newest) == (1, 10)
    assert store.events(after_id=10).events == ()
    assert store.events(after_id=99).newest == 10


def test_an_event_that_is_committed_twice_is_stored_once(store: Store) -> None:
    """A commit whose outcome is unknown is repeated."""
    store.commit([event(1), event(2)])
    store.commit([event(2, payload='{"other":1}'), event(3)])
    assert [(each.id, each.payload) for each in store.events().events] == [(1, "{}"), (2, "{}"), (3, "{}")]


def test_events_and_the_death_that_they_report_are_stored_together(store: Store) -> None:
    store.commit([death(1), event(1, type="status_changed"), event(2, type="worker_died", at_wall_ms=NOW)])
    assert [each.type for each in store.events().events] == ["status_changed", "worker_died"]
    assert len(store.deaths()) == 1


def test_the_events_of_one_worker_come_newest_first(store: Store) -> None:
    store.commit([event(1), event(2, component_id="other"), event(3), event(4, component_id=None)])
    assert [each.id for each in store.events_of(TAG)] == [3, 1]
    assert [each.id for each in store.events_of(TAG, limit=1)] == [3]
    assert [each.id for each in store.events_of(None)] == [4]
    assert store.events_of("absent") == ()


def test_the_events_of_one_worker_begin_where_they_are_asked_for(store: Store) -> None:
    store.commit([event(number, at_wall_ms=NOW + number) for number in range(1, 6)])
    assert [each.id for each in store.events_of(TAG, since_wall_ms=NOW + 4)] == [5, 4]


def test_the_lives_of_a_worker_are_counted_over_all_its_deaths(store: Store) -> None:
    store.commit([death(1, uptime_ms=500), death(2, uptime_ms=1500), death(1, component_id="other")])
    assert store.lives(TAG) == Lives(2, 2000)
    assert store.lives("absent") == Lives()
