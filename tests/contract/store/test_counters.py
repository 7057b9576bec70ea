"""Counters equal the history, also of workers that were reset, or removed and added again."""

from __future__ import annotations

from tests.contract.records import NOW, TAG, death, final_death
from tests.contract.store.test_store import lost

from rekindle.actors.facts.records import RestartReset, StateRemoved
from rekindle.persistence.store import SqlStore
from rekindle.persistence.store_check import check_store


def miscounts(store: SqlStore) -> tuple[str, ...]:
    """What a check of the store's database finds."""
    assert store.address is not None
    return check_store(store.address).miscounts


def test_counters_agree_with_the_history_after_deaths_resets_and_removals(sql_store: SqlStore) -> None:
    sql_store.commit([death(1), death(2), final_death(3), RestartReset(TAG, NOW + 1)])
    sql_store.commit([death(4), StateRemoved(TAG), death(5), death(1, component_id="other")])
    assert sql_store.load().workers[TAG].restart_count == 2
    assert miscounts(sql_store) == ()


def test_a_counter_that_differs_from_the_history_is_found(sql_store: SqlStore) -> None:
    sql_store.commit([death(1), death(2)])
    with sql_store._writer.begin() as connection:
        connection.exec_driver_sql("UPDATE rekindle_worker_restart_policy SET restart_count = 5")
    assert miscounts(sql_store) == (f"{TAG}: 5 restarts were counted, the history has 2",)


def test_restarts_that_were_counted_without_their_rows_are_not_missed(sql_store: SqlStore) -> None:
    sql_store.commit([death(1), lost(7, last_generation=8, at=NOW)])
    assert miscounts(sql_store) == ()
