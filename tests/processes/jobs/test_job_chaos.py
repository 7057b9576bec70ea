"""Workers that serve queues, killed at random: no job is lost, none is recorded twice, none is framed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

import pytest
from tests.processes.jobs.job_chaos import Account, Nemesis, check, fill, specs, wait_for_the_end
from tests.processes.waiting import eventually
from tests.services import PostgresService

from rekindle.actors import System
from rekindle.persistence import open_store
from rekindle.worker.guardian import marked_processes


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, database: Path) -> str:
    """A database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{database}"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """Where the workers note what they do."""
    file = tmp_path / "notes"
    file.touch()
    return file


@pytest.mark.timeout(1200)
def test_workers_killed_at_random_lose_no_job(
    where: str, notes: Path, marks: list[str], no_traces: None
) -> None:
    killers = fill(where)
    with System(specs(notes), store=open_store(where)) as system:
        marks.append(system.mark)
        with Nemesis(system.mark, 1, notes) as nemesis:
            wait_for_the_end(system)
        check(system, killers, Account.of(notes))
    assert nemesis.kills > 0


@pytest.mark.timeout(1200)
def test_a_supervisor_killed_with_its_workers_loses_no_job(where: str, notes: Path, marks: list[str]) -> None:
    killers = fill(where)
    for _ in range(2):
        with Supervisor(where, notes):
            work_for_a_while(notes, more=20)
    with System(specs(notes), store=open_store(where)) as system:
        marks.append(system.mark)
        wait_for_the_end(system)
        check(system, killers, Account.of(notes))


@pytest.mark.timeout(1200)
def test_a_server_that_restarts_in_the_middle_loses_no_job(
    postgres_url: str, postgres_service: PostgresService, notes: Path, marks: list[str]
) -> None:
    killers = fill(postgres_url)
    with System(specs(notes), store=open_store(postgres_url)) as system:
        marks.append(system.mark)
        with Nemesis(system.mark, 2, notes):
            work_for_a_while(notes, more=20)
            postgres_service.restart()
            wait_for_the_end(system)
        check(system, killers, Account.of(notes))


def work_for_a_while(notes: Path, more: int) -> None:
    """Wait until some more executions have begun."""
    before = notes.stat().st_size
    assert eventually(lambda: notes.stat().st_size > before + more * len("began 1 1 1\n"), 60.0)


class Supervisor:
    """A supervisor in a process of its own, to be killed."""

    def __init__(self, where: str, notes: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _HOST, where, str(notes)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            text=True,
        )
        assert self.process.stdout is not None
        self.mark = self.process.stdout.readline().strip()
        assert self.mark

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """End it as the out-of-memory killer would; its workers follow."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        assert eventually(lambda: not marked_processes(self.mark))


_HOST = """
import sys, threading
from pathlib import Path
from rekindle.actors import System
from rekindle.persistence import open_store
from tests.processes.jobs.job_chaos import specs
where, notes = sys.argv[1:]
system = System(specs(Path(notes)), store=open_store(where))
system.start()
print(system.mark, flush=True)
threading.Event().wait()
"""
