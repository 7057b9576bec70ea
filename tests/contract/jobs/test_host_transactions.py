"""Jobs that a host enqueues inside its own transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session
from tests.contract.jobs.test_idle_workers import idle_until
from tests.contract.queues import Queues

from rekindle.actors.errors import PayloadError, RequestRefusedError
from rekindle.actors.facts.jobs import SERVED_QUEUES, Unique
from rekindle.actors.facts.records import MetaSet
from rekindle.persistence import open_store
from rekindle.persistence.jobs.job_queue import JobQueue
from rekindle.persistence.store import SqlStore


@pytest.fixture
def queue(sql_store: SqlStore) -> JobQueue:
    sql_store.commit([MetaSet(SERVED_QUEUES, '["tag"]')])
    return sql_store.jobs


def test_a_job_of_a_session_exists_when_the_host_commits(queue: JobQueue, rows: Engine) -> None:
    with Session(rows) as session:
        job = queue.enqueue("tag", {"path": "a"}, session=session)
        assert queue.find() == ()
        session.commit()
    assert (queue.get(job).state, queue.get(job).payload) == ("pending", '{"path":"a"}')


def test_a_job_of_a_session_that_is_rolled_back_never_existed(queue: JobQueue, rows: Engine) -> None:
    with Session(rows) as session:
        queue.enqueue("tag", 1, session=session)
        session.rollback()
        job = queue.enqueue("tag", 2, session=session)
        session.commit()
    assert [found.id for found in queue.find()] == [job]


def test_many_jobs_of_a_connection_are_one_transaction(queue: JobQueue, rows: Engine) -> None:
    with rows.begin() as connection:
        jobs = queue.enqueue_many("tag", range(2500), session=connection)
        assert queue.find() == ()
    assert [int(job.payload) for job in queue.named(jobs)] == list(range(2500))


def test_a_commit_of_a_session_wakes_an_idle_worker(
    sql_queues: Queues, queue: JobQueue, rows: Engine
) -> None:
    def commit() -> None:
        with Session(rows) as session:
            queue.enqueue("tag", {}, session=session)
            session.commit()

    assert idle_until(sql_queues, commit) < 4.0


def test_the_end_of_a_savepoint_does_not_wake_a_worker_too_early(
    sql_queues: Queues, queue: JobQueue, rows: Engine
) -> None:
    if rows.dialect.name == "sqlite":  # whose driver would commit at the end of a savepoint
        event.listen(rows, "connect", lambda connection, _: setattr(connection, "isolation_level", None))
        event.listen(rows, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
    with Session(rows) as session:
        with session.begin_nested():
            queue.enqueue("tag", {}, session=session)
        assert queue.find() == ()
        assert idle_until(sql_queues, session.commit) < 4.0


def test_a_session_that_is_used_again_and_again_collects_nothing(queue: JobQueue, rows: Engine) -> None:
    woken: list[list[str]] = []
    queue.wake_workers = woken.append  # type: ignore[method-assign, assignment]
    with Session(rows) as session:
        for number in range(3):
            queue.enqueue("tag", number, session=session)
            queue.enqueue("tag", number, session=session)
            session.commit()
        session.commit()
    assert woken == [["tag"]] * 3


@pytest.fixture
def of_server(postgres_url: str) -> Iterator[JobQueue]:
    store = open_store(postgres_url)
    store.commit([MetaSet(SERVED_QUEUES, '["tag"]')])
    yield store.jobs
    store.close()


def test_a_psycopg_connection_is_a_session_too(of_server: JobQueue, postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        kept = of_server.enqueue_many("tag", ["a", "b"], session=connection)
        assert of_server.find() == ()
    with psycopg.connect(postgres_url) as connection:
        of_server.enqueue("tag", "c", session=connection)
        connection.rollback()
    assert [job.id for job in reversed(of_server.find())] == list(kept)


def test_a_psycopg_connection_may_return_its_rows_as_it_likes(of_server: JobQueue, postgres_url: str) -> None:
    as_dict: Any = dict_row
    with psycopg.connect(postgres_url, row_factory=as_dict) as connection:
        job = of_server.enqueue("tag", "a", session=connection)
        assert connection.execute("SELECT 1 AS one").fetchone() == {"one": 1}
    assert of_server.get(job).payload_value == "a"


def test_a_psycopg_connection_in_autocommit_mode_adds_at_once(of_server: JobQueue, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        jobs = of_server.enqueue_many("tag", ["a", "b", "a"], session=connection, unique=Unique(for_s=60))
        assert sorted(job.id for job in of_server.find()) == sorted(set(jobs))
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


def test_unique_and_chained_jobs_are_part_of_a_psycopg_transaction(
    of_server: JobQueue, postgres_url: str
) -> None:
    with psycopg.connect(postgres_url) as connection:
        first = of_server.enqueue("tag", 1, session=connection, unique=Unique("k", for_s=60))
        assert of_server.enqueue("tag", 1, session=connection, unique=Unique("k", for_s=60)) == first
        second = of_server.enqueue("tag", 2, session=connection, after=[first])
        assert of_server.find() == ()
    assert [of_server.get(job).state for job in (first, second)] == ["pending", "waiting"]


def test_an_error_in_a_psycopg_transaction_is_one_of_psycopg(of_server: JobQueue, postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        with suppress(psycopg.Error):
            connection.execute("SELECT 1 / 0")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            of_server.enqueue("tag", 1, session=connection)


def test_a_session_of_asyncio_is_refused_with_the_way_to_use_it(queue: JobQueue) -> None:
    with pytest.raises(TypeError, match=r"must not be an AsyncSession: .*await session\.run_sync"):
        queue.enqueue("tag", 1, session=AsyncSession())


def test_a_session_of_another_database_is_refused_and_stays_usable(queue: JobQueue, tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path / 'other.db'}")
    with Session(engine) as session:
        with pytest.raises(RequestRefusedError, match="without the tables of Rekindle"):
            queue.enqueue("tag", 1, session=session)
        session.commit()
    engine.dispose()


def test_something_else_than_a_session_is_refused(queue: JobQueue) -> None:
    with pytest.raises(TypeError, match="session must be an SQLAlchemy Session or Connection"):
        queue.enqueue("tag", 1, session="db")


def test_of_many_jobs_with_one_bad_payload_none_is_added(queue: JobQueue) -> None:
    with pytest.raises(PayloadError, match="the payload is not JSON"):
        queue.enqueue_many("tag", [1, {2}, 3])
    assert queue.find() == ()


@pytest.mark.parametrize("payloads", ["abc", b"abc", {"path": "a"}])
def test_one_payload_instead_of_a_list_is_refused(queue: JobQueue, payloads: Any) -> None:
    with pytest.raises(
        PayloadError, match=r"a list of payloads is needed, not .*one job is added by enqueue"
    ):
        queue.enqueue_many("tag", payloads)
    assert queue.find() == ()


def test_ten_thousand_jobs_are_added_in_one_transaction(queue: JobQueue) -> None:
    jobs = queue.enqueue_many("tag", range(10_000), priority=3)
    assert (len(set(jobs)), queue.stats()[0].pending) == (10_000, 10_000)
    assert queue.get(jobs[-1]).payload == "9999"
