"""Jobs whose supervisor is killed: they are done afterwards, one execution after the other, without blame."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from tests.processes.supervisors import Supervisor
from tests.processes.waiting import Held, eventually

from rekindle.persistence import open_queue
from rekindle.persistence.jobs.job_queue import JobQueue
from rekindle.worker.guardian import marked_processes


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, database: Path) -> str:
    """The address of an empty database."""
    if request.param == "sqlite":
        return str(database)
    url = request.getfixturevalue("postgres_url")
    assert isinstance(url, str)
    return url


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which the workers note their executions."""
    monkeypatch.setenv("NOTES", str(tmp_path / "notes"))
    return tmp_path / "notes"


@pytest.fixture
def queue(address: str) -> Iterator[JobQueue]:
    """The queue, once a supervisor has made the tables."""
    with Supervisor("jobs", address) as supervisor:
        assert supervisor.mark
        assert supervisor.stop() == 0
    queue = open_queue(address)
    yield queue
    queue.close()


def began(notes: Path) -> list[list[str]]:
    """(job, attempt, pid) of every execution that began."""
    lines = notes.read_text().splitlines() if notes.exists() else []
    return [words[1:] for words in map(str.split, lines) if words[0] == "began"]


def _began_times(notes: Path, number: int) -> bool:
    return len(began(notes)) == number


def test_a_good_job_whose_supervisor_is_killed_three_times_is_done_and_not_toxic(
    address: str, queue: JobQueue, notes: Path, tmp_path: Path, marks: list[str]
) -> None:
    job = queue.enqueue("tag", {"do": "wait for", "file": str(tmp_path / "go")})
    for number in range(1, 4):
        with Supervisor("jobs", address) as supervisor:
            marks.append(supervisor.mark)
            assert eventually(partial(_began_times, notes, number))
            supervisor.kill()
    with Supervisor("jobs", address) as supervisor:
        marks.append(supervisor.mark)
        assert eventually(partial(_began_times, notes, 4)), queue.get(job)
        (tmp_path / "go").touch()
        assert eventually(lambda: queue.get(job).state == "done"), queue.get(job)
        assert supervisor.stop() == 0
    done = queue.get(job)
    assert (done.attempts, done.crash_count, queue.crashes([job])) == (4, 0, ())
    assert eventually(lambda: not any(marked_processes(mark) for mark in marks))


@contextmanager
def locked(address: str) -> Iterator[None]:
    """While another program keeps the supervisor from writing to the database, which it can still read."""
    if "://" in address:
        engine = create_engine(address.replace("postgresql://", "postgresql+psycopg://"))
        statements = ["BEGIN", "LOCK TABLE rekindle_meta IN SHARE ROW EXCLUSIVE MODE"]
    else:
        engine = create_engine(f"sqlite:///{address}", isolation_level="AUTOCOMMIT")
        statements = ["BEGIN IMMEDIATE"]
    with engine.connect() as connection:
        for statement in statements:
            connection.execute(text(statement))
        yield
        connection.execute(text("ROLLBACK"))
    engine.dispose()


def test_a_job_is_executed_again_only_when_the_process_that_held_it_is_gone(
    address: str, queue: JobQueue, notes: Path, tmp_path: Path, marks: list[str]
) -> None:
    """The database was locked when the former supervisor started, so that it holds no mark of its processes.

    The old worker is stopped, and its guardian too: nothing but the next supervisor ends it.
    """
    job = queue.enqueue("tag", {"do": "wait for", "file": str(tmp_path / "go")})
    with Supervisor("jobs", address, "wait") as supervisor, Held() as held:
        assert supervisor.said() == "opened"
        with locked(address):
            supervisor.go_on()
            marks.append(supervisor.mark)
        assert eventually(partial(_began_times, notes, 1))
        ((_, _, old),) = began(notes)
        guardian = supervisor.guardian()
        assert guardian is not None
        for pid in (guardian, int(old)):
            held.add(pid)
            os.kill(pid, signal.SIGSTOP)
        supervisor.kill()
        with Supervisor("jobs", address) as second:
            marks.append(second.mark)
            assert eventually(partial(_began_times, notes, 2))
            assert held.living() == [guardian], "two processes execute one job"
            (tmp_path / "go").touch()
            assert eventually(lambda: queue.get(job).state == "done")
            assert second.stop() == 0
        os.kill(guardian, signal.SIGKILL)
    assert (queue.get(job).attempts, queue.crashes([job])) == (2, ())
