"""What a database adds to the contract: rows that people and other programs read, and sessions at once."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from sqlalchemy import Engine, Integer, inspect, select, text
from sqlalchemy import event as sqlalchemy_event
from tests.contract.records import NOW, TAG, death, event, final_death, known

from rekindle.actors.errors import RecordRefusedError, StoreUnavailableError
from rekindle.actors.facts.records import HealthMirrored, MetaSet, MirrorWiped, StateRemoved
from rekindle.persistence import open_store
from rekindle.persistence.schema.models import EventRow, HealthRow, RestartPolicyRow
from rekindle.persistence.store import SqlStore

HEALTHY = HealthMirrored(
    component_id=TAG,
    generation=3,
    status="healthy",
    pid=4242,
    current_job="7",
    last_heartbeat_wall_ms=NOW,
)


def test_an_event_is_a_row_that_tells_all_of_it(sql_store: SqlStore, rows: Engine) -> None:
    sql_store.commit([event(7, type="worker_died", payload='{"generation":1}')])
    with rows.connect() as connection:
        (row,) = connection.execute(select(EventRow.__table__)).all()
    assert (row.id, row.type, row.component_id, row.at_wall_ms) == (7, "worker_died", TAG, NOW)
    assert (row.schema_version, row.payload) == (1, '{"generation":1}')


def test_ps_02_a_restart_is_also_when_the_row_was_updated(sql_store: SqlStore, rows: Engine) -> None:
    sql_store.commit([death(1)])
    with rows.connect() as connection:
        row = connection.execute(select(RestartPolicyRow.__table__)).one()
    assert (row.last_restart_wall_ms, row.updated_at_wall_ms) == (NOW, NOW)


def test_ps_11_every_time_is_an_integer_of_wall_milliseconds(sql_store: SqlStore, rows: Engine) -> None:
    sql_store.commit([death(1), final_death(2), event(1), HEALTHY])
    stamps: list[int | None] = []
    with rows.connect() as connection:
        for table in inspect(connection).get_table_names():
            for column in inspect(connection).get_columns(table):
                if column["name"].endswith("_wall_ms"):
                    assert isinstance(column["type"], Integer)
                    stamps += connection.scalars(text(f"SELECT {column['name']} FROM {table}")).all()
    written = [stamp for stamp in stamps if stamp is not None]
    assert len(written) >= 8
    assert all(isinstance(stamp, int) and stamp > 1_700_000_000_000 for stamp in written)


def test_ps_11_a_column_that_holds_a_time_has_its_unit_in_its_name(sql_store: SqlStore, rows: Engine) -> None:
    with rows.connect() as connection:
        tables = [name for name in inspect(connection).get_table_names() if name.startswith("rekindle_")]
        columns = {column["name"] for table in tables for column in inspect(connection).get_columns(table)}
    assert not {name for name in columns if "_at" in name and not name.endswith("_wall_ms")}
    assert not {name for name in columns if "monotonic" in name}


def test_ps_12_increments_from_two_sessions_at_once_are_all_counted(address: str) -> None:
    each = 25
    stores = [open_store(address, exclusive=False, busy_timeout_ms=10_000) for _ in range(2)]
    barrier = threading.Barrier(2)

    def count(store: SqlStore, first: int) -> Callable[[], None]:
        def run() -> None:
            barrier.wait(10)
            for generation in range(first, first + each):
                store.commit([death(generation)])

        return run

    threads = [threading.Thread(target=count(store, 1 + n * each)) for n, store in enumerate(stores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert known(stores[0]).restart_count == 2 * each
    for store in stores:
        store.close()


def test_ps_15_a_new_start_wipes_the_mirror_and_leaves_the_counters(
    sql_store: SqlStore, rows: Engine
) -> None:
    sql_store.commit([death(1), HEALTHY])
    sql_store.commit([MirrorWiped()])
    with rows.connect() as connection:
        assert connection.execute(select(HealthRow.__table__)).all() == []
    assert known(sql_store).restart_count == 1


def test_the_mirror_shows_the_latest_health_only(sql_store: SqlStore, rows: Engine) -> None:
    idle = HealthMirrored(
        component_id=TAG,
        generation=4,
        status="pending",
        pid=None,
        current_job=None,
        last_heartbeat_wall_ms=None,
    )
    sql_store.commit([HEALTHY, idle])
    with rows.connect() as connection:
        row = connection.execute(select(HealthRow.__table__)).one()
    assert row[:6] == (TAG, 4, "pending", None, None, None)


def test_a_removed_worker_leaves_the_mirror(sql_store: SqlStore, rows: Engine) -> None:
    sql_store.commit([HEALTHY, StateRemoved(TAG)])
    with rows.connect() as connection:
        assert connection.execute(select(HealthRow.__table__)).all() == []


def test_a_batch_is_stored_as_a_whole_or_not_at_all(sql_store: SqlStore, rows: Engine) -> None:
    with rows.begin() as connection:
        connection.execute(text("CREATE UNIQUE INDEX one_of_a_kind ON rekindle_meta (value)"))
    with pytest.raises(RecordRefusedError):
        sql_store.commit([death(1), MetaSet("a", "same"), MetaSet("b", "same"), death(2)])
    assert (sql_store.load().workers, sql_store.load().meta, sql_store.deaths()) == ({}, {}, ())
    sql_store.commit([death(1), MetaSet("a", "same")])
    assert known(sql_store).restart_count == 1


def test_text_that_a_database_refuses_does_not_block_a_batch(sql_store: SqlStore) -> None:
    sql_store.commit([final_death(1, reason="nul \0 and half \ud83d a pair"), MetaSet("k", "\0")])
    assert known(sql_store).failure_reason == "nul \N{REPLACEMENT CHARACTER} and half ? a pair"


def test_a_word_that_a_newer_version_wrote_does_not_stop_a_reader(sql_store: SqlStore, rows: Engine) -> None:
    sql_store.commit([death(1)])
    with rows.begin() as connection:
        connection.execute(text("UPDATE rekindle_death SET cause = 'meteor', action = 'pray', job = '{'"))
    (record,) = sql_store.deaths()
    assert (record.cause.value, record.action.value, record.job) == ("unknown", "none", "{")


def test_an_edge_reads_while_the_persistence_actor_writes(sql_store: SqlStore) -> None:
    # Every read sees whole batches: two deaths at a time.
    done = threading.Event()
    seen: list[int] = []

    def read() -> None:
        while not done.is_set():
            seen.append(known(sql_store).restart_count)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for generation in range(1, 101, 2):
            sql_store.commit([death(generation), death(generation + 1)])
    finally:
        done.set()
        reader.join(10)
    assert seen == sorted(seen)
    assert all(count % 2 == 0 for count in seen)


def test_a_closed_store_reports_that_it_is_closed(sql_store: SqlStore) -> None:
    sql_store.close()
    with pytest.raises(StoreUnavailableError, match="is closed"):
        sql_store.commit([death(1)])


def test_a_listener_of_sqlalchemy_sees_every_statement_of_a_death(sql_store: SqlStore) -> None:
    seen: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
        seen.append(statement)

    sql_store.commit([death(1)])
    sqlalchemy_event.listen(Engine, "before_cursor_execute", note)
    try:
        sql_store.commit([death(2), death(2), event(1)])
        sql_store.commit([final_death(3)])
    finally:
        sqlalchemy_event.remove(Engine, "before_cursor_execute", note)
    sql_store.commit([death(4)])
    for table in ("rekindle_death", "rekindle_worker_restart_policy", "rekindle_event"):
        assert any(f"INSERT INTO {table} " in statement for statement in seen), table
    remembered = known(sql_store)
    assert (remembered.restart_count, remembered.failure_reason) == (3, "too many restarts")
    assert len(sql_store.deaths()) == 4
    assert [each.id for each in sql_store.events().events] == [1]
