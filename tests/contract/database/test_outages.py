"""The database is locked, full or gone for a while: a commit reports it soon, and works again after."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.mounts import small_file_system
from tests.contract.records import death, event, known
from tests.services import PostgresService

from rekindle.actors.errors import StoreDamagedError, StoreUnavailableError
from rekindle.actors.facts.records import Record
from rekindle.persistence import open_store
from rekindle.persistence.store import SqlStore

PATIENCE_S = 20.0


def commit_until_stored(store: SqlStore, records: list[Record]) -> None:
    """What the persistence actor does: try again until it works."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            store.commit(records)
        except StoreUnavailableError:
            continue
        return
    store.commit(records)


@pytest.fixture
def sqlite_store(tmp_path: Path) -> Iterator[SqlStore]:
    """A store on a file, with little patience for other writers."""
    store = open_store(tmp_path / "rekindle.db", busy_timeout_ms=50)
    yield store
    store.close()


def test_f19_a_locked_database_is_reported_soon_and_works_after(sqlite_store: SqlStore) -> None:
    sqlite_store.commit([death(1)])
    other = sqlite3.connect(sqlite_store.name, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    with pytest.raises(StoreUnavailableError, match="database is locked"):
        sqlite_store.commit([death(2)])
    assert time.monotonic() - began < 5
    other.execute("ROLLBACK")
    other.close()
    sqlite_store.commit([death(2)])
    assert known(sqlite_store).restart_count == 2


def test_f19_a_locked_table_on_a_server_is_reported_soon_and_works_after(postgres_url: str) -> None:
    store = open_store(postgres_url, busy_timeout_ms=50)
    other = open_store(postgres_url, exclusive=False)
    with other._writer.begin() as connection:
        connection.exec_driver_sql("LOCK TABLE rekindle_death IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(StoreUnavailableError, match="lock timeout"):
            store.commit([death(1)])
    store.commit([death(1)])
    assert known(store).restart_count == 1
    store.close()


def test_f19_reading_goes_on_while_another_writes(sqlite_store: SqlStore) -> None:
    sqlite_store.commit([death(1)])
    other = sqlite3.connect(sqlite_store.name, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert known(sqlite_store).restart_count == 1
    other.close()


def test_f20_a_full_disk_is_reported_and_forgotten_once_there_is_space(tmp_path: Path) -> None:
    with small_file_system(tmp_path / "mount", "1m") as mount:
        store = open_store(mount / "rekindle.db")
        store.commit([death(1)])
        fill(mount / "ballast")
        refused = fill_up(store)
        with pytest.raises(StoreUnavailableError):
            store.commit([death(n) for n in refused])
        assert known(store).restart_count == len(store.deaths(limit=10_000)) == refused.start - 1
        (mount / "ballast").unlink()
        store.commit([death(n) for n in refused])
        assert known(store).restart_count == refused.stop - 1
        store.close()


def fill(ballast: Path) -> None:
    """Leave no space on the file system."""
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            return


def fill_up(store: SqlStore) -> range:
    """Commit until the disk is full; the generations of the batch that was refused."""
    for first in range(2, 10_000, 100):
        batch = range(first, first + 100)
        try:
            store.commit([death(n) for n in batch])
        except StoreUnavailableError:
            return batch
    raise AssertionError("the disk never filled up")


def test_f24_a_server_that_restarts_between_commits_is_found_again(
    postgres_service: PostgresService, postgres_url: str
) -> None:
    store = open_store(postgres_url)
    store.commit([death(1)])
    postgres_service.restart()
    commit_until_stored(store, [death(2)])
    assert known(store).restart_count == 2
    store.close()


def test_f24_a_server_that_is_gone_is_reported_and_found_again(
    postgres_service: PostgresService, postgres_url: str
) -> None:
    store = open_store(postgres_url)
    postgres_service.stop()
    try:
        with pytest.raises(StoreUnavailableError):
            store.commit([death(1)])
        with pytest.raises(StoreUnavailableError):
            store.load()
        with pytest.raises(StoreUnavailableError):
            store.deaths()
    finally:
        postgres_service.start()
    commit_until_stored(store, [death(1)])
    assert known(store).restart_count == 1
    store.close()


def test_a_database_that_breaks_while_it_is_open_is_damaged_not_unavailable(sqlite_store: SqlStore) -> None:
    sqlite_store.commit([death(1)])
    other = sqlite3.connect(sqlite_store.name)
    other.execute("DROP TABLE rekindle_event")
    other.close()
    with pytest.raises(StoreDamagedError, match="no such table"):
        sqlite_store.commit([death(2), event(1)])
    assert [kept.generation for kept in sqlite_store.deaths()] == [1]


def test_a_server_whose_tables_are_gone_is_damaged_not_unavailable(postgres_url: str) -> None:
    store, other = open_store(postgres_url), open_store(postgres_url, exclusive=False)
    with other._writer.begin() as connection:
        connection.exec_driver_sql("DROP TABLE rekindle_event")
    with pytest.raises(StoreDamagedError, match="does not exist"):
        store.commit([death(1), event(1)])
    assert store.deaths() == ()
    store.close()


def test_a_database_that_was_removed_is_noticed_and_taken_up_again_when_it_is_back(tmp_path: Path) -> None:
    """SQLite went on writing into a file that no longer had a name."""
    database, elsewhere = tmp_path / "rekindle.db", tmp_path / "elsewhere.db"
    store = open_store(database)
    store.commit([death(1)])
    database.rename(elsewhere)
    with pytest.raises(StoreUnavailableError, match="its file was removed"):
        store.commit([death(2)])
    with pytest.raises(StoreUnavailableError, match="its file was removed"):
        store.jobs.retry([1])
    database.touch()
    with pytest.raises(StoreUnavailableError, match="its file is another one now"):
        store.commit([death(2)])
    elsewhere.rename(database)
    store.commit([death(2)])
    assert known(store).restart_count == 2
    store.close()


def test_a_store_closes_while_a_transaction_of_its_queues_waits_for_the_server(postgres_url: str) -> None:
    """A supervisor whose server hung did not end: it waited for the thread that waited for the server."""
    store = open_store(postgres_url, exclusive=False)
    begun, answered = threading.Event(), threading.Event()

    def write() -> None:
        with store.jobs._transaction() as connection:
            connection.exec_driver_sql("SELECT 1")
            begun.set()
            answered.wait(PATIENCE_S)

    writer = threading.Thread(target=write)
    writer.start()
    assert begun.wait(PATIENCE_S)
    began = time.monotonic()
    store.close()
    assert time.monotonic() - began < PATIENCE_S / 2
    answered.set()
    writer.join()
    assert store.jobs._writing._kept is None, "the thread that waited has closed the connection"
