"""Jobs that a host enqueues inside its own transaction."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Engine, create_engine
from sqlalchemy.orm import Session
from tests.contract.queues import Queues
from tests.contract.test_claims import idle_until

from rekindle.actors.errors import PayloadError, RequestRefusedError
from rekindle.actors.facts.jobs import SERVED_QUEUES
from rekindle.actors.facts.records import MetaSet
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


def test_a_psycopg_connection_is_a_session_too(postgres_url: str) -> None:
    from rekindle.persistence import open_store

    store = open_store(postgres_url)
    store.commit([MetaSet(SERVED_QUEUES, '["tag"]')])
    with psycopg.connect(postgres_url) as connection:
        kept = store.jobs.enqueue_many("tag", ["a", "b"], session=connection)
        assert store.jobs.find() == ()
    with psycopg.connect(postgres_url) as connection:
        store.jobs.enqueue("tag", "c", session=connection)
        connection.rollback()
    assert [job.id for job in reversed(store.jobs.find())] == list(kept)
    store.close()


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


def test_ten_thousand_jobs_are_added_in_one_transaction(queue: JobQueue) -> None:
    jobs = queue.enqueue_many("tag", range(10_000), priority=3)
    assert (len(set(jobs)), queue.stats()[0].pending) == (10_000, 10_000)
    assert queue.get(jobs[-1]).payload == "9999"
