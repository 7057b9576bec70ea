"""Real systems over real files and processes, and what must be left of them: nothing."""

from __future__ import annotations

import gc
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Protocol

import pytest
from tests.processes import policies
from tests.processes.waiting import eventually
from tests.services import empty_postgres_url, postgres_service, postgres_url

from rekindle.actors import System, WorkerSpec
from rekindle.persistence import open_store
from rekindle.worker.guardian import marked_processes, sweep

__all__ = ["empty_postgres_url", "postgres_service", "postgres_url"]

TRACES_GO_WITHIN_S = 10.0


class Run(Protocol):
    """Starts a system on the test's database file, and stops it at the end of the test."""

    def __call__(
        self, *specs: WorkerSpec, max_concurrent_starts: int | None = None, busy_timeout_ms: int = 500
    ) -> System: ...


class Rows:
    """A second, plain way into the test's database file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, statement: str, *values: object) -> list[tuple[object, ...]]:
        """What a query finds now."""
        with closing(sqlite3.connect(self.path, timeout=10)) as connection:
            return connection.execute(statement, values).fetchall()

    def deaths(self, component_id: str) -> list[tuple[object, ...]]:
        """(generation, cause, exit_code, signal, action) of every death, oldest first."""
        return self(
            "SELECT generation, cause, exit_code, signal, action FROM rekindle_death"
            " WHERE component_id = ? ORDER BY generation",
            component_id,
        )

    def restart_count(self, component_id: str) -> object:
        """The stored lifetime count; None without a row."""
        found = self(
            "SELECT restart_count FROM rekindle_worker_restart_policy WHERE component_id = ?", component_id
        )
        return found[0][0] if found else None


@pytest.fixture(params=["executed", "warm"])
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test with Python workers that are executed, and with ones that a warm process forks."""
    monkeypatch.setitem(policies.STARTED, "warm", request.param == "warm")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Where the test's database is, or will be."""
    return tmp_path / "rekindle.db"


@pytest.fixture
def rows(database: Path) -> Rows:
    """A second way into the test's database."""
    return Rows(database)


@pytest.fixture
def marks() -> Iterator[list[str]]:
    """The marks of the test's systems; no process with one of them may be left at the end."""
    marks: list[str] = []
    yield marks
    left = [process for mark in marks for process in marked_processes(mark)]
    for mark in marks:
        sweep(mark, within_s=5.0)
    assert left == [], "processes were left behind"


@pytest.fixture
def no_traces() -> Iterator[None]:
    """No thread, no descriptor and no zombie more at the end than there was at the beginning."""
    gc.collect()
    threads, descriptors, zombies = set(threading.enumerate()), set(open_descriptors()), set(unreaped())
    yield
    gc.collect()
    eventually(lambda: set(threading.enumerate()) <= threads, TRACES_GO_WITHIN_S)
    assert set(threading.enumerate()) - threads == set(), "threads were left behind"
    left = {fd: name for fd, name in open_descriptors().items() if fd not in descriptors}
    assert left == {}, "descriptors were left open"
    assert {pid: name for pid, name in unreaped().items() if pid not in zombies} == {}, "not reaped"


@pytest.fixture
def run(database: Path, marks: list[str], no_traces: None) -> Iterator[Run]:
    """Starts systems on the test's database, one after another."""
    with ExitStack() as stack:

        def run(
            *specs: WorkerSpec, max_concurrent_starts: int | None = None, busy_timeout_ms: int = 500
        ) -> System:
            store = open_store(database, busy_timeout_ms=busy_timeout_ms)
            system = System(specs, store=store, max_concurrent_starts=max_concurrent_starts)
            stack.callback(system.stop)
            system.start()
            marks.append(system.mark)
            return system

        yield run


def open_descriptors() -> dict[int, str]:
    """Our descriptors, and what they stand for."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:
            continue  # the one that listed the directory
    return found


def unreaped() -> dict[int, str]:
    """Our children that have ended and are not reaped, with the names of their programs."""
    found = {}
    for thread in os.listdir("/proc/self/task"):
        with suppress(OSError):
            for pid in Path(f"/proc/self/task/{thread}/children").read_text().split():
                name, _, rest = Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(")")
                if rest.split()[0] == "Z":
                    found[int(pid)] = name
    return found
