"""What workers used and which jobs they took, as every store keeps it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.contract.queues import Queues
from tests.contract.records import NOW, TAG
from tests.contract.store.test_pruning import ALL, DAY, prune

from rekindle.actors.facts.records import StateRemoved, UsageNoted
from rekindle.actors.facts.usage import Usage
from rekindle.actors.ports import Store
from rekindle.persistence.sql import usage_rows
from rekindle.persistence.store import SqlStore

FULL = Usage(memory_mb=81.25, cpu_percent=12.5, threads=3, descriptors=17)


def noted(at: int = NOW, component_id: str = TAG, used: Usage = FULL) -> UsageNoted:
    return UsageNoted(component_id=component_id, generation=2, at_wall_ms=at, usage=used, peak_memory_mb=95.5)


def test_usage_comes_back_as_it_was_stored_newest_first(store: Store) -> None:
    bare = noted(NOW + 1, used=Usage(memory_mb=7.0))
    store.commit([noted(), bare, noted(NOW, "worker:other:0")])
    assert store.usages(TAG) == (bare, noted())
    assert store.usages(TAG, limit=1) == (bare,)
    assert store.usages(TAG, since_wall_ms=NOW + 1) == (bare,)
    assert store.usages("worker:absent:0") == ()


def test_a_note_that_is_repeated_changes_nothing(store: Store) -> None:
    store.commit([noted()])
    store.commit([noted(used=Usage(memory_mb=1.0)), noted(), StateRemoved(TAG)])
    assert store.usages(TAG) == (noted(),)


def test_what_was_used_long_ago_is_deleted(store: Store) -> None:
    for worker in (TAG, "worker:other:0"):
        store.commit([noted(NOW - days * DAY, worker) for days in range(10)])
    prune(store, replace(ALL, event_days=2.5))
    assert len(store.usages(TAG)) == len(store.usages("worker:other:0")) == 3


def test_only_a_limited_number_of_usage_rows_of_one_worker_is_stored(
    sql_store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage_rows, "MOST_SAMPLES", 10)
    sql_store.commit([noted(NOW + number) for number in range(50)])
    prune(sql_store, ALL)
    assert [each.at_wall_ms for each in sql_store.usages(TAG)] == list(range(NOW + 49, NOW + 39, -1))


def test_the_jobs_that_a_worker_took_are_found_the_latest_first(queues: Queues) -> None:
    first, second = queues.add(), queues.add()
    queues.add()
    done = queues.claim()
    queues.finish(done)
    queues.claim()
    queues.claim(worker="worker:other:0")
    taken = queues.jobs.taken_by(TAG)
    assert {job.id: job.state for job in taken} == {first: "done", second: "running"}
    assert [job.id for job in taken] == [second, first]
    assert len(queues.jobs.taken_by(TAG, limit=1)) == 1
    assert queues.jobs.taken_by(TAG, since_wall_ms=NOW * 2) == queues.jobs.taken_by("absent") == ()
