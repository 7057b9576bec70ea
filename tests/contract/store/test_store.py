"""What every store does, in memory or in a database."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.contract.records import NOW, TAG, death, final_death, known

from rekindle.actors.deaths.death import Action, Cause, Job
from rekindle.actors.facts.alert import Alert, AlertKind, Severity
from rekindle.actors.facts.audit_entry import AuditEntry, AuditResult
from rekindle.actors.facts.records import (
    RECENT_DEATHS,
    AlertKept,
    AlertsForgotten,
    DeathAmended,
    MetaSet,
    ReleaseNoted,
    RestartReset,
    RestartsCounted,
    StateRemoved,
    StreakCleared,
)
from rekindle.actors.ports import Store


def test_ps_01_an_unknown_worker_has_no_restarts(store: Store) -> None:
    assert TAG not in store.load().workers
    assert (known(store).restart_count, known(store).last_restart_wall_ms) == (0, None)


def test_ps_02_the_first_restart_counts_one(store: Store) -> None:
    store.commit([death(1)])
    assert (known(store).restart_count, known(store).last_restart_wall_ms) == (1, NOW)


def test_ps_03_a_fourth_restart_makes_three_four_and_leaves_the_failure_alone(store: Store) -> None:
    store.commit([death(1), death(2), death(3), final_death(4)])
    store.commit([death(5)])
    worker = known(store)
    assert (worker.restart_count, worker.streak_count) == (4, 4)
    assert (worker.failed_at_wall_ms, worker.failure_reason) == (NOW, "too many restarts")


def test_ps_04_marking_failed_keeps_the_count_and_the_last_restart(store: Store) -> None:
    store.commit([death(n, died_at_wall_ms=NOW + n) for n in range(1, 6)])
    store.commit([final_death(6, died_at_wall_ms=NOW + 60)])
    worker = known(store)
    assert (worker.restart_count, worker.streak_count, worker.last_restart_wall_ms) == (5, 5, NOW + 5)
    assert (worker.failed_at_wall_ms, worker.failure_reason) == (NOW + 60, "too many restarts")


def test_ps_05_a_worker_may_fail_without_ever_having_been_restarted(store: Store) -> None:
    store.commit([final_death(1)])
    assert (known(store).restart_count, known(store).failed_at_wall_ms) == (0, NOW)


def test_ps_06_a_reset_clears_counters_and_failure(store: Store) -> None:
    store.commit([death(1), final_death(2)])
    store.commit([RestartReset(TAG, NOW + 9)])
    worker = known(store)
    assert (worker.restart_count, worker.streak_count, worker.last_restart_wall_ms) == (0, 0, None)
    assert (worker.failed_at_wall_ms, worker.failure_reason) == (None, None)


def test_the_version_that_was_given_up_is_stored_with_the_failure_and_cleared_by_a_reset(
    store: Store,
) -> None:
    store.commit([death(1, version="one-a"), final_death(2, version="two-a")])
    assert known(store).failed_fingerprint == "two-a"
    store.commit([RestartReset(TAG, NOW)])
    assert known(store).failed_fingerprint is None
    store.commit([final_death(3)])
    assert (known(store).failed_at_wall_ms, known(store).failed_fingerprint) == (NOW, None)
    store.commit([final_death(4, version="four-a")])
    assert known(store).failed_fingerprint == "four-a"


def test_ps_06_a_reset_of_an_unknown_worker_makes_no_row(store: Store) -> None:
    store.commit([RestartReset(TAG, NOW)])
    assert TAG not in store.load().workers


def test_ps_07_the_counters_of_a_removed_worker_stay_with_the_id_as_its_deaths_do(store: Store) -> None:
    """A worker that was scaled away and back had 12 restarts, and 49 in its history."""
    store.commit([death(1), final_death(2)])
    before = known(store)
    store.commit([StateRemoved(TAG)])
    assert known(store) == before
    assert [record.generation for record in store.deaths(TAG)] == [2, 1]


def test_ps_07_removing_an_unknown_worker_is_fine(store: Store) -> None:
    store.commit([StateRemoved(TAG)])
    assert TAG not in store.load().workers


@pytest.mark.parametrize("action", [Action.NOTIFY_ONLY, Action.NONE])
def test_a_death_without_a_restart_is_only_a_row(store: Store, action: Action) -> None:
    store.commit([death(1, action=action)])
    worker = known(store)
    assert (worker.restart_count, worker.last_generation, worker.restart_due_wall_ms) == (0, 1, None)
    assert worker.recent_deaths_wall_ms == (NOW,)


def test_a_death_that_is_committed_twice_counts_once(store: Store) -> None:
    store.commit([death(1)])
    store.commit([death(1, died_at_wall_ms=NOW + 5), death(2)])
    assert known(store).restart_count == 2
    assert store.deaths(TAG)[1].died_at_wall_ms == NOW


def test_a_death_that_is_twice_in_one_batch_counts_once(store: Store) -> None:
    store.commit([death(1), death(1), death(1)])
    assert (known(store).restart_count, len(store.deaths())) == (1, 1)


def test_a_final_death_that_is_repeated_after_a_reset_does_not_fail_the_worker_again(store: Store) -> None:
    store.commit([final_death(1)])
    store.commit([RestartReset(TAG, NOW), final_death(1)])
    assert known(store).failed_at_wall_ms is None


def test_the_order_within_a_batch_counts(store: Store) -> None:
    store.commit([death(1), death(2), RestartReset(TAG, NOW), death(3)])
    assert known(store).restart_count == 1
    store.commit([final_death(4), RestartReset(TAG, NOW)])
    assert (known(store).restart_count, known(store).failed_at_wall_ms) == (0, None)


def test_sustained_health_before_a_restart_begins_a_new_streak(store: Store) -> None:
    store.commit([death(1), death(2), death(3, streak_cleared=True)])
    assert (known(store).restart_count, known(store).streak_count) == (3, 1)


def test_sustained_health_before_a_final_death_leaves_no_streak(store: Store) -> None:
    store.commit([death(1), death(2), final_death(3, streak_cleared=True)])
    assert (known(store).restart_count, known(store).streak_count) == (2, 0)


def test_a_cleared_streak_leaves_the_lifetime_count(store: Store) -> None:
    store.commit([death(1), death(2), StreakCleared(TAG, NOW)])
    assert (known(store).restart_count, known(store).streak_count) == (2, 0)


def test_workers_in_one_batch_count_each_for_itself(store: Store) -> None:
    batch = [death(n, component_id=f"worker:{k}") for n in (1, 2, 3) for k in range(20)]
    store.commit(batch)
    workers = store.load().workers
    assert {worker.restart_count for worker in workers.values()} == {3}
    assert len(workers) == 20


def lost(restarts: int, *, last_generation: int, at: int) -> RestartsCounted:
    return RestartsCounted(
        component_id=TAG, restarts=restarts, streak=restarts, at_wall_ms=at, last_generation=last_generation
    )


def test_lost_restarts_are_added_and_the_later_time_stays(store: Store) -> None:
    store.commit([death(1), lost(7, last_generation=8, at=NOW - 50)])
    worker = known(store)
    assert (worker.restart_count, worker.streak_count, worker.last_restart_wall_ms) == (8, 8, NOW)
    store.commit([lost(2, last_generation=10, at=NOW + 50)])
    assert (known(store).restart_count, known(store).last_restart_wall_ms) == (10, NOW + 50)


def test_lost_restarts_of_an_unknown_worker_are_its_first(store: Store) -> None:
    store.commit([lost(3, last_generation=3, at=NOW)])
    assert (known(store).restart_count, known(store).last_generation) == (3, 3)


def test_lost_restarts_that_are_committed_twice_count_once(store: Store) -> None:
    store.commit([lost(3, last_generation=3, at=NOW)])
    store.commit([lost(3, last_generation=3, at=NOW), death(4)])
    assert known(store).restart_count == 4


def test_a_death_learns_later_how_its_process_ended(store: Store) -> None:
    store.commit([death(1, cause=Cause.HEARTBEAT_LOST, signal=None)])
    store.commit([DeathAmended(component_id=TAG, generation=1, exit_code=None, signal=9)])
    (record,) = store.deaths(TAG)
    assert (record.cause, record.exit_code, record.signal) == (Cause.HEARTBEAT_LOST, None, 9)


def test_amending_an_unknown_death_changes_nothing(store: Store) -> None:
    store.commit([DeathAmended(component_id=TAG, generation=1, exit_code=0, signal=None)])
    assert store.deaths() == ()


def test_ps_17_a_death_comes_back_as_it_was_recorded(store: Store) -> None:
    recorded = death(1, cause=Cause.EXITED, exit_code=3, signal=None, job="index/7", reason="été \N{SNOWMAN}")
    store.commit([recorded])
    assert store.deaths(TAG) == (recorded,)


def test_ps_17_deaths_are_found_by_their_signal(store: Store) -> None:
    store.commit([death(1), death(2, cause=Cause.EXITED, exit_code=1, signal=None), death(3)])
    store.commit([death(1, component_id="worker:library:3")])
    assert [(d.component_id, d.generation) for d in store.deaths(signal=9)] == [
        ("worker:library:3", 1),
        (TAG, 3),
        (TAG, 1),
    ]
    assert [d.generation for d in store.deaths(TAG, signal=9)] == [3, 1]
    assert store.deaths(signal=15) == ()


def test_ps_17_the_newest_deaths_come_first_even_when_the_clock_stepped_back(store: Store) -> None:
    store.commit([death(n, died_at_wall_ms=NOW - n) for n in range(1, 6)])
    assert [d.generation for d in store.deaths(limit=2)] == [5, 4]
    assert [d.generation for d in store.deaths(TAG, limit=2)] == [5, 4]
    assert store.deaths(limit=0) == ()


@pytest.mark.parametrize("job", [42, "42", 0, "", "läuft", "nul\0", "half \ud83d pair", 2**80, None])
def test_a_job_keeps_its_type(store: Store, job: Job | None) -> None:
    store.commit([death(1, job=job)])
    (record,) = store.deaths(TAG)
    assert (record.job, type(record.job)) == (job, type(job))


def test_the_last_generation_and_the_due_restart_are_remembered(store: Store) -> None:
    store.commit([death(7, delay_ms=4_000)])
    assert (known(store).last_generation, known(store).restart_due_wall_ms) == (7, NOW + 4_000)
    store.commit([final_death(8)])
    assert (known(store).last_generation, known(store).restart_due_wall_ms) == (8, None)


def test_only_the_recent_deaths_are_loaded_oldest_first(store: Store) -> None:
    store.commit([death(n, died_at_wall_ms=NOW + n) for n in range(1, RECENT_DEATHS + 21)])
    store.commit([death(1, component_id="worker:other")])
    recent = known(store).recent_deaths_wall_ms
    assert recent == tuple(range(NOW + 21, NOW + RECENT_DEATHS + 21))
    assert known(store, "worker:other").recent_deaths_wall_ms == (NOW,)


def test_settings_are_stored_replaced_and_removed(store: Store) -> None:
    store.commit([MetaSet("worker_enabled", "true"), MetaSet("colour", "red")])
    store.commit([MetaSet("worker_enabled", "false"), MetaSet("colour", None), MetaSet("unknown", None)])
    assert store.load().meta == {"worker_enabled": "false"}


def test_an_empty_batch_is_fine(store: Store) -> None:
    store.commit([])
    assert store.load().workers == {}


def test_closing_twice_is_fine(store: Store) -> None:
    store.close()
    store.close()


def test_deaths_before_a_reset_count_for_nothing_and_stay_as_history(store: Store) -> None:
    store.commit([death(1, died_at_wall_ms=1000), death(2, died_at_wall_ms=2000, delay_ms=60_000)])
    store.commit([RestartReset(TAG, 2500)])
    store.commit([death(3, died_at_wall_ms=3000)])
    worker = known(store)
    assert (worker.recent_deaths_wall_ms, worker.last_generation) == ((3000,), 3)
    assert len(store.deaths(TAG)) == 3


def test_a_delay_from_before_a_reset_is_not_waited_for(store: Store) -> None:
    store.commit([death(1, died_at_wall_ms=1000, delay_ms=60_000), RestartReset(TAG, 2000)])
    assert known(store).restart_due_wall_ms is None


def test_the_orders_of_operators_are_listed_newest_first(store: Store) -> None:
    orders = [
        AuditEntry(
            at_wall_ms=number,
            gateway="control",
            uid=0,
            pid=7,
            claimed_user=None,
            action="restart",
            target=f"worker:tag:{number}",
            detail="",
            result=AuditResult.DONE,
            reason="",
        )
        for number in range(3)
    ]
    store.commit(orders)
    assert store.audit() == tuple(reversed(orders))
    assert store.audit(limit=1) == (orders[2],)
    assert store.audit(limit=0) == ()


def test_jr_15_what_came_of_a_work_item_stands_with_the_death(store: Store) -> None:
    """JR-15: the record says cleared; one of a stop, which is not a death, changes nothing."""
    store.commit([death(1), ReleaseNoted(TAG, 1, "fg-7", "cleared"), ReleaseNoted(TAG, 2, "fg-8", "cleared")])
    [kept] = store.deaths(TAG)
    assert (kept.work_item, kept.released) == ("fg-7", "cleared")


def test_a_work_item_that_no_database_could_hold_is_stored_as_far_as_possible(store: Store) -> None:
    store.commit([death(1), ReleaseNoted(TAG, 1, "a\0\ud800", "cleared")])
    [kept] = store.deaths(TAG)
    assert kept.work_item == "a\N{REPLACEMENT CHARACTER}?"


def an_alert(number: int, **changes: object) -> Alert:
    alert = Alert(
        id=number,
        kind=AlertKind.CRASHED,
        component_id="worker:tag:0",
        severity=Severity.CRITICAL,
        message="crashed: killed by SIGKILL",
        opened_at_wall_ms=number,
        last_at_wall_ms=number,
        work_item="bead-7",
    )
    return replace(alert, **changes)


def test_an_alert_is_stored_in_its_last_state(store: Store) -> None:
    store.commit([AlertKept(an_alert(1)), AlertKept(an_alert(1, occurrences=2)), AlertKept(an_alert(2))])
    changed = an_alert(1, occurrences=3, acknowledged_by="root", acknowledged_at_wall_ms=9)
    store.commit([AlertKept(changed)])
    assert store.alerts() == (changed, an_alert(2))


def test_an_alert_that_no_database_could_hold_does_not_stop_other_records(store: Store) -> None:
    store.commit([AlertKept(an_alert(1, message="no such file: a\0\udcff", reason="\ud800")), death(1)])
    assert [alert.id for alert in store.alerts()] == [1]
    assert len(store.deaths(TAG)) == 1


def test_the_oldest_alerts_that_are_over_are_not_recalled(store: Store) -> None:
    store.commit([AlertKept(an_alert(1))])
    store.commit([AlertKept(an_alert(number, resolved_at_wall_ms=5)) for number in range(2, 132)])
    assert [alert.id for alert in store.alerts()] == [1, *range(32, 132)]
    store.commit([AlertsForgotten(tuple(range(100, 132)))])
    assert [alert.id for alert in store.alerts()] == [1, *range(2, 100)]
