"""The numbers of the workers' processes, in every store."""

from __future__ import annotations

import pytest
from tests.contract.records import NOW, TAG, death, event

from rekindle.actors.facts.generations import (
    EVERY_OTHER,
    GenerationEnded,
    GenerationsReserved,
    GenerationsSettled,
    GenerationStarted,
    LostLife,
    mark_after,
)
from rekindle.actors.facts.records import StateRemoved
from rekindle.actors.ports import Store


def latest(store: Store, component_id: str = TAG) -> int:
    """The number after which a worker's numbers continue."""
    return store.load().of(component_id).last_generation


def test_numbers_that_were_reserved_and_not_given_back_count_as_used(store: Store) -> None:
    store.commit([GenerationsReserved(TAG, 100), death(3)])
    assert latest(store) == 100


def test_a_reservation_never_lowers_the_mark(store: Store) -> None:
    store.commit([GenerationsReserved(TAG, 200), GenerationsReserved(TAG, 100)])
    assert latest(store) == 200


def test_an_orderly_end_gives_the_unused_numbers_back(store: Store) -> None:
    store.commit([GenerationsReserved(TAG, 100), death(3), GenerationsSettled(TAG, 4)])
    assert latest(store) == 4


def test_a_worker_without_a_mark_has_that_of_every_other_worker(store: Store) -> None:
    store.commit([GenerationsReserved(TAG, 300), GenerationsReserved(EVERY_OTHER, 100)])
    assert (latest(store, "new"), latest(store)) == (100, 300)
    store.commit([GenerationStarted("new", 101, NOW)])
    assert latest(store, "new") == mark_after(101) == 200


def test_a_removed_worker_keeps_its_mark(store: Store) -> None:
    store.commit([GenerationsReserved(TAG, 100), StateRemoved(TAG)])
    assert latest(store) == 100


def test_a_process_that_was_started_and_did_not_end_is_lost(store: Store) -> None:
    store.commit(
        [GenerationsReserved(TAG, 100), GenerationStarted(TAG, 1, NOW), event(1, at_wall_ms=NOW + 7)]
    )
    assert store.load().lost == (LostLife(TAG, 1, NOW, NOW + 7),)


@pytest.mark.parametrize("end", [GenerationEnded(TAG, 1), death(1)])
def test_a_process_that_was_stopped_or_died_is_not_lost(store: Store, end: GenerationEnded) -> None:
    store.commit([GenerationStarted(TAG, 1, NOW), end])
    assert store.load().lost == ()
    store.commit([GenerationStarted(TAG, 2, NOW + 1)])
    assert [life.generation for life in store.load().lost] == [2]


def test_the_mark_is_moved_on_when_half_of_a_block_is_left() -> None:
    assert [mark_after(number) for number in (0, 49, 50, 149, 150)] == [100, 100, 200, 200, 300]
