"""What is too old is deleted, a little at a time; what a restart is decided by stays."""

from __future__ import annotations

import fcntl
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from tests.contract.records import NOW, TAG, death, event, known

from rekindle.actors.deaths.crash_bundle import bundle_of
from rekindle.actors.deaths.death import Cause, Death, Exit
from rekindle.actors.deaths.evidence import Remains
from rekindle.actors.facts.audit_entry import AuditEntry, AuditResult
from rekindle.actors.facts.records import RECENT_DEATHS, DeathRecord, EndKept
from rekindle.actors.ports import Store
from rekindle.actors.spec.policies.retention_policy import Retention
from rekindle.persistence import open_store
from rekindle.persistence import retention as pruning
from rekindle.persistence.store import SqlStore

DAY = 86_400_000
ALL = Retention(
    event_days=36_500.0, event_count=10**9, history_days=36_500.0, job_days=36_500.0, job_count=10**9
)


def prune(store: Store, retention: Retention, now: int = NOW) -> int:
    """Prune until nothing is left to prune; in how many steps."""
    steps = 1
    while store.prune(retention, now):
        steps += 1
        assert steps < 1000
    return steps


def test_no_more_events_are_stored_than_the_limit(store: Store) -> None:
    store.commit([event(number) for number in range(1, 31)])
    prune(store, replace(ALL, event_count=10))
    page = store.events(limit=100)
    assert [each.id for each in page.events] == list(range(21, 31))
    assert page.oldest == 21


def test_no_more_audit_entries_are_stored_than_the_limit(store: Store) -> None:
    order = AuditEntry(
        at_wall_ms=NOW,
        gateway="http",
        uid=None,
        pid=None,
        claimed_user=None,
        action="restart",
        target=TAG,
        detail="",
        result=AuditResult.REFUSED,
        reason="unknown",
    )
    store.commit([msgspec.structs.replace(order, pid=number) for number in range(30)])
    prune(store, replace(ALL, audit_count=10))
    assert [each.pid for each in store.audit()] == list(range(29, 19, -1))


def test_events_are_deleted_when_they_are_old(store: Store) -> None:
    store.commit([event(number, at_wall_ms=NOW - (10 - number) * DAY) for number in range(1, 11)])
    prune(store, replace(ALL, event_days=2.5))
    assert [each.id for each in store.events().events] == [8, 9, 10]


def test_the_newest_event_stays_so_that_the_numbers_go_on(store: Store) -> None:
    store.commit([event(1, at_wall_ms=0), event(2, at_wall_ms=0)])
    prune(store, Retention(event_days=1, event_count=1))
    assert store.load().last_event_id == 2


def test_a_wall_clock_that_jumped_leaves_no_gap(store: Store) -> None:
    stamps = [NOW - 9 * DAY, NOW, NOW - 9 * DAY, NOW]
    store.commit([event(number, at_wall_ms=at) for number, at in enumerate(stamps, 1)])
    prune(store, replace(ALL, event_days=5))
    assert [each.id for each in store.events().events] == [2, 3, 4]


def test_it_goes_in_small_steps(sql_store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "CHUNK", 10)
    sql_store.commit([event(number) for number in range(1, 101)])
    assert prune(sql_store, replace(ALL, event_count=5)) >= 10
    assert len(sql_store.events().events) == 5


def test_the_deaths_that_restarts_are_decided_by_stay_however_old_they_are(sql_store: SqlStore) -> None:
    old = NOW - 1000 * DAY
    sql_store.commit([death(number, died_at_wall_ms=old + number) for number in range(1, 251)])
    sql_store.commit([death(1, component_id="worker:other:0", died_at_wall_ms=old)])
    before = known(sql_store)
    prune(sql_store, Retention(history_days=365))
    assert known(sql_store) == before
    assert len(sql_store.deaths(TAG, limit=1000)) == RECENT_DEATHS
    assert len(sql_store.deaths("worker:other:0")) == 1


def test_the_evidence_of_a_death_is_deleted_with_it(sql_store: SqlStore) -> None:
    old = NOW - 1000 * DAY
    records = [with_bundle(number, old + number) for number in range(1, 121)]
    sql_store.commit([*records, with_bundle(1, old, "worker:other:0")])
    prune(sql_store, Retention(history_days=365))
    kept = [each.generation for each in sql_store.deaths(TAG, limit=1000)]
    assert len(kept) == RECENT_DEATHS
    assert [each.generation for each in sql_store.bundles(TAG, limit=1000)] == kept
    assert len(sql_store.bundles("worker:other:0")) == 1


def test_the_evidence_of_ends_that_were_no_deaths_goes_with_its_age(sql_store: SqlStore) -> None:
    """Of a worker that never died nothing was ever looked at."""
    evidence = [with_bundle(number, NOW - age * DAY).bundle for number, age in ((1, 1000), (2, 1000), (3, 1))]
    sql_store.commit([EndKept(each) for each in evidence if each is not None])
    prune(sql_store, Retention(history_days=365))
    assert [each.generation for each in sql_store.bundles(TAG)] == [3]


def with_bundle(generation: int, at: int, component_id: str = TAG) -> DeathRecord:
    """A death with its evidence."""
    died = Death(component_id=component_id, generation=generation, cause=Cause.EXITED, exit=Exit(code=1))
    evidence = bundle_of(died, at, died.exit, Remains())
    return death(generation, component_id=component_id, died_at_wall_ms=at, bundle=evidence)


def test_young_deaths_stay_however_many_they_are(sql_store: SqlStore) -> None:
    sql_store.commit([death(number, died_at_wall_ms=NOW - number) for number in range(1, 251)])
    prune(sql_store, Retention(history_days=365))
    assert len(sql_store.deaths(TAG, limit=1000)) == 250


def test_old_orders_of_operators_are_deleted(sql_store: SqlStore) -> None:
    entry = AuditEntry(
        at_wall_ms=NOW,
        gateway="control",
        uid=0,
        pid=1,
        claimed_user=None,
        action="restart",
        target=TAG,
        detail="",
        result=AuditResult.DONE,
        reason="",
    )
    sql_store.commit([msgspec.structs.replace(entry, at_wall_ms=NOW - 400 * DAY), entry])
    prune(sql_store, Retention(history_days=365))
    assert sql_store.audit() == (entry,)


def test_who_deletes_goes_before_the_workers_at_an_sqlite_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would hardly find the file free while jobs are done, and a death would wait behind it."""
    store = open_store(tmp_path / "rekindle.db")
    wanted: list[bool] = []

    def step(*_: object) -> bool:
        with open(tmp_path / "rekindle.db.want") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                wanted.append(True)
        return False

    monkeypatch.setattr(store._pruning, "step", step)
    store.commit([death(1)])
    store.prune(Retention(), 0)
    assert wanted == [True]
    store.close()
