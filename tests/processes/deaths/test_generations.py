"""Generations: a supervisor that is killed at any moment leaves none to be used twice."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

import psycopg
import pytest
from tests.processes.supervisors import Supervisor
from tests.processes.waiting import PATIENCE_S, eventually

from rekindle.actors.facts.records import EventRecord
from rekindle.actors.ports import Store
from rekindle.persistence import open_past
from rekindle.worker.guardian import marked_processes

T = TypeVar("T")

KILLED_AFTER_S = {
    "sqlite": (2.0, 2.0, 2.0, 0.2, 0.2, 2.0, 0.2, 2.0, 0.0, 0.02),
    "postgresql": (0.0, 0.2, 1.0),
}


@pytest.fixture(params=["sqlite", "postgresql"])
def kind(request: pytest.FixtureRequest) -> str:
    """The kind of database."""
    assert isinstance(request.param, str)
    return request.param


@pytest.fixture
def address(kind: str, request: pytest.FixtureRequest, database: Path) -> str:
    """The address of an empty database."""
    return str(database if kind == "sqlite" else request.getfixturevalue("postgres_url"))


@pytest.fixture
def lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which the workers note their lives."""
    monkeypatch.setenv("LIVES", str(tmp_path / "lives"))
    return tmp_path / "lives"


def noted(lives: Path) -> dict[str, list[int]]:
    """The generations that each worker noted, in order."""
    found: dict[str, list[int]] = defaultdict(list)
    for line in lives.read_text().splitlines() if lives.exists() else []:
        worker, generation, _pid = line.split()
        found[worker].append(int(generation))
    return found


def test_a_supervisor_that_is_killed_soon_after_its_start_uses_no_generation_twice(
    kind: str, address: str, lives: Path, marks: list[str]
) -> None:
    """They were 1, 2, 3, 4, 1, 1, 2, 1: a start that had not been written down was forgotten."""
    for after_s in KILLED_AFTER_S[kind]:
        with Supervisor("noted", address) as supervisor:
            marks.append(supervisor.mark)
            eventually(lambda: False, within_s=after_s)
            supervisor.kill()
        assert eventually(lambda: marked_processes(marks[-1]) == [], PATIENCE_S)
    with Supervisor("noted", address) as supervisor:
        marks.append(supervisor.mark)
        assert eventually(lambda: len(noted(lives)) == 3)
        assert supervisor.stop() == 0
    for worker, generations in noted(lives).items():
        assert generations == sorted(set(generations)), (worker, generations)


def test_the_generations_have_no_gap_if_the_supervisor_was_stopped(
    address: str, lives: Path, marks: list[str]
) -> None:
    for number in range(1, 4):
        with Supervisor("noted", address) as supervisor:
            marks.append(supervisor.mark)
            assert eventually(lambda: len(noted(lives)["lives:0"]) == number)  # noqa: B023
            assert supervisor.stop() == 0
    assert noted(lives)["lives:0"] == [1, 2, 3]


OUTAGES = {"sqlite": 2, "postgresql": 1}


def test_supervisors_that_never_reach_the_database_leave_no_generation_behind_that_goes_back(
    kind: str, address: str, lives: Path, marks: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The numbers that they had reserved were forgotten, and the next supervisor went on below them."""
    monkeypatch.setenv("SPOOL", str(tmp_path / "unsaved"))
    with Supervisor("noted", address) as supervisor:
        marks.append(supervisor.mark)
        assert supervisor.stop() == 0
    for _ in range(OUTAGES[kind]):
        began = len(noted(lives)["lives:0"])
        with Supervisor("noted", address, "wait") as supervisor:
            assert supervisor.said() == "opened"
            with unwritable(address):
                supervisor.go_on()
                assert eventually(lambda: len(noted(lives)["lives:0"]) > began, 60.0)  # noqa: B023
                supervisor.kill()
    with Supervisor("noted", address) as supervisor:
        marks.append(supervisor.mark)
        assert eventually(lambda: len(noted(lives)["lives:0"]) == OUTAGES[kind] + 2)
        assert supervisor.stop() == 0
    for worker, generations in noted(lives).items():
        assert generations == sorted(set(generations)), (worker, generations)
    assert noted(lives)["lives:0"][-1] < 1000
    assert int((tmp_path / "unsaved.mark").read_text()) == 0


@contextmanager
def unwritable(address: str) -> Iterator[None]:
    """No other connection can write the numbers of processes."""
    if "://" not in address:
        with closing(sqlite3.connect(address, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
        return
    with psycopg.connect(address) as server:
        server.execute("LOCK TABLE rekindle_generation IN EXCLUSIVE MODE")
        yield


def test_what_ended_with_its_supervisor_is_recorded_by_the_next_one_and_does_not_count(
    address: str, lives: Path, marks: list[str]
) -> None:
    """The lives of a killed supervisor had a start and no end."""
    with Supervisor("noted", address) as supervisor:
        marks.append(supervisor.mark)
        assert eventually(lambda: len(noted(lives)["lives:0"]) == 1)
        assert eventually(lambda: stored(address, lost_so_far) == ["lives:0", "lives:1"])
        supervisor.kill()
    with Supervisor("noted", address) as supervisor:
        marks.append(supervisor.mark)
        assert eventually(lambda: len(noted(lives)["lives:0"]) == 2)
        assert supervisor.stop() == 0
    (death,) = stored(address, lambda store: store.deaths("lives:0"))
    assert (death.generation, death.cause, death.action) == (1, "supervisor_lost", "none")
    (event,) = (each for each in stored(address, events) if each.component_id == "lives:0")
    assert json.loads(event.payload)["generation"] == 1
    remembered = stored(address, lambda store: store.load())
    assert (remembered.of("lives:0").restart_count, remembered.lost) == (0, ())


def lost_so_far(store: Store) -> list[str]:
    """The workers that would be lost if the supervisor were killed now, without the one that dies anyway."""
    return sorted(life.component_id for life in store.load().lost if life.component_id != "dies:0")


def events(store: Store) -> list[EventRecord]:
    """The deaths that were published."""
    return [each for each in store.events(limit=1000).events if each.type == "worker_died"]


def stored(address: str, asked: Callable[[Store], T]) -> T:
    """What a reader finds in the store."""
    store = open_past(address)
    try:
        return asked(store)
    finally:
        store.close()
