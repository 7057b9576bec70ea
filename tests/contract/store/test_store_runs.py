"""The runs of scheduled workers, as every store keeps them."""

from __future__ import annotations

from dataclasses import replace as with_settings

import pytest
from msgspec.structs import replace
from tests.contract.records import NOW, TAG
from tests.contract.store.test_pruning import ALL, DAY, prune

from rekindle.actors.facts.records import MetaSet, StateRemoved
from rekindle.actors.facts.runs import Hindrance, Run, RunKept, RunState, Trigger
from rekindle.actors.ports import Store
from rekindle.persistence.sql import run_rows
from rekindle.persistence.store import SqlStore

WAITING = Run(component_id=TAG, number=1, state=RunState.WAITING, due_wall_ms=NOW)
FAILED = Run(
    component_id=TAG,
    number=2,
    state=RunState.FAILED,
    trigger=Trigger.OPERATOR,
    due_wall_ms=NOW + 1,
    last_due_wall_ms=NOW + 9,
    times=4,
    started_at_wall_ms=NOW + 2,
    ended_at_wall_ms=NOW + 3,
    attempts=3,
    exit_code=1,
    signal=9,
    reason=Hindrance.TIMEOUT,
    detail="took\x00 too long",
)


def test_runs_come_back_as_they_were_stored_newest_first(store: Store) -> None:
    other = replace(WAITING, component_id="worker:other:0")
    store.commit([RunKept(WAITING), RunKept(FAILED), RunKept(other)])
    first, second = store.runs(TAG)
    assert (replace(first, detail=""), second) == (replace(FAILED, detail=""), WAITING)
    assert store.runs(TAG, limit=1)[0].number == 2
    assert store.runs("worker:absent:0") == ()


def test_a_later_state_replaces_the_earlier_one_also_within_a_commit(store: Store) -> None:
    running = replace(WAITING, state=RunState.RUNNING, started_at_wall_ms=NOW)
    store.commit([RunKept(WAITING), RunKept(running)])
    assert store.runs(TAG) == (running,)
    done = replace(running, state=RunState.SUCCEEDED, ended_at_wall_ms=NOW + 5)
    store.commit([RunKept(done), MetaSet("schedule:" + TAG, "{}")])
    assert store.runs(TAG) == (done,)


def test_the_runs_of_a_removed_worker_stay(store: Store) -> None:
    store.commit([RunKept(WAITING), StateRemoved(TAG)])
    assert store.runs(TAG) == (WAITING,)


def test_old_runs_are_deleted(store: Store) -> None:
    kept = [replace(WAITING, number=10 - days, due_wall_ms=NOW - days * DAY) for days in range(10)]
    store.commit([RunKept(run) for run in kept])
    prune(store, with_settings(ALL, history_days=2.5))
    assert [run.number for run in store.runs(TAG)] == [10, 9, 8]


def test_only_a_limited_number_of_runs_of_one_worker_is_stored(
    sql_store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_rows, "MOST_RUNS", 5)
    sql_store.commit([RunKept(replace(WAITING, number=number)) for number in range(1, 20)])
    prune(sql_store, ALL)
    assert [run.number for run in sql_store.runs(TAG)] == [19, 18, 17, 16, 15]
