"""The store in memory answers as the database does, for arbitrary records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.contract.records import death, known

from rekindle.actors.deaths.death import Action, Cause
from rekindle.actors.errors import StoreUnavailableError
from rekindle.actors.facts.records import (
    DeathAmended,
    DeathRecord,
    MetaSet,
    Record,
    RestartReset,
    RestartsCounted,
    StateRemoved,
    StreakCleared,
)
from rekindle.persistence import MemoryStore, open_store
from rekindle.persistence.schema.models import Model
from rekindle.persistence.store import SqlStore

IDS = st.sampled_from(["worker:a", "worker:b"])
STAMPS = st.integers(1_700_000_000_000, 1_700_000_000_100)
CODES = st.none() | st.integers(0, 3)
GENERATIONS = st.integers(1, 12)

RECORDS: st.SearchStrategy[Record] = st.one_of(
    st.builds(
        DeathRecord,
        component_id=IDS,
        generation=GENERATIONS,
        died_at_wall_ms=STAMPS,
        cause=st.sampled_from(Cause),
        exit_code=CODES,
        signal=CODES,
        uptime_ms=st.integers(0, 10),
        job=st.none() | st.integers() | st.text(max_size=3),
        action=st.sampled_from(Action),
        reason=st.sampled_from(["why", "why not"]),
        delay_ms=st.integers(0, 10),
        streak_cleared=st.booleans(),
        version=st.none() | st.sampled_from(["a-1", "b-1"]),
    ),
    st.builds(
        RestartsCounted,
        component_id=IDS,
        restarts=st.integers(1, 5),
        streak=st.integers(1, 5),
        at_wall_ms=STAMPS,
        last_generation=GENERATIONS,
    ),
    st.builds(DeathAmended, component_id=IDS, generation=GENERATIONS, exit_code=CODES, signal=CODES),
    st.builds(StreakCleared, IDS, STAMPS),
    st.builds(RestartReset, IDS, STAMPS),
    st.builds(StateRemoved, IDS),
    st.builds(MetaSet, st.sampled_from("xy"), st.none() | st.sampled_from(["1", "2"])),
)
BATCHES = st.lists(st.lists(RECORDS, max_size=8), max_size=4)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlStore]:
    """One SQLite store for all examples; each begins by emptying it."""
    store = open_store(tmp_path_factory.mktemp("twins") / "rekindle.db")
    yield store
    store.close()


def emptied(store: SqlStore) -> SqlStore:
    with store._writer.begin() as connection:
        for table in Model.metadata.sorted_tables:
            connection.execute(table.delete())
    return store


def by_worker(store: SqlStore | MemoryStore) -> list[list[DeathRecord]]:
    return [
        list(store.deaths(worker, signal=signal))
        for worker in ("worker:a", "worker:b")
        for signal in (None, 1)
    ]


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=BATCHES)
def test_the_twins_agree(database: SqlStore, batches: list[list[Record]]) -> None:
    memory, sql = MemoryStore(), emptied(database)
    for batch in batches:
        memory.commit(batch)
        sql.commit(batch)
    assert memory.load() == sql.load()
    assert by_worker(memory) == by_worker(sql)
    assert memory.deaths() == sql.deaths()


def test_a_fault_in_memory_keeps_nothing_until_it_is_lifted() -> None:
    store = MemoryStore()
    store.fault = StoreUnavailableError("disk full")
    with pytest.raises(StoreUnavailableError):
        store.commit([death(1)])
    store.fault = None
    assert known(store).restart_count == 0
    store.commit([death(1)])
    assert known(store).restart_count == 1


def test_a_restart_of_the_application_finds_its_history(tmp_path: Path) -> None:
    """The base of PS-08 to PS-10: what was counted is there for the next process."""
    first = open_store(tmp_path / "rekindle.db")
    first.commit([death(1), death(2), death(3)])
    first.close()
    second = open_store(tmp_path / "rekindle.db")
    assert (known(second).restart_count, known(second).last_generation) == (3, 3)
    second.close()
