"""What happened is told by the database where no supervisor runs, with the same words and documents."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from tests.cli.conftest import Client
from tests.running.conftest import Run, Running

SPENT = "worker:spent:0"
CONFIG = """
[worker.spent]
command = ["sh", "-c", "echo beyond repair; exit 7"]
restart = { max_in_window = 1, initial_delay_s = 0, max_delay_s = 0, min_delay_s = 0 }

[worker.sound]
command = ["sleep", "1000"]
"""
PAST = [
    ("history", SPENT),
    ("history", SPENT, "--bundle", "last"),
    ("history", SPENT, "--bundle", "1"),
    ("timeline", SPENT, "--limit", "3"),
    ("timeline", "worker:sound:0"),
    ("audit",),
    ("alerts", "--all"),
    ("events", "--since", "0", "--limit", "3"),
    ("events", "--topics", "event:worker_failed:*"),
]


@pytest.fixture
def spent(run: Run) -> Running:
    """A supervisor that has given a worker up."""
    running = run(CONFIG)
    running.wait_for(SPENT, shown="failed")
    running.wait_for("worker:sound:0", status="healthy")
    return running


def client_of(running: Running) -> Client:
    return Client(running.file.parent / ".rekindle")


def test_the_database_tells_the_same_as_the_supervisor_did(spent: Running) -> None:
    rekindle = client_of(spent)
    rekindle("reset", "worker:sound:0")
    before = {words: rekindle(*words, "--json").document for words in PAST}
    spent.kill()
    for words, document in before.items():
        said = rekindle(*words, "--json")
        assert said.code == 0
        assert (
            said.err == f"rekindle: no supervisor runs; this is what {rekindle.state}/rekindle.db remembers\n"
        )
        assert _without_the_present(said.document) == _without_the_present(document), words


def _without_the_present(document: dict[str, object]) -> object:
    """What is not about how long the present life has lasted; and the latest order may not be kept yet."""
    return {name: value for name, value in document.items() if name not in ("ever", "shown", "newest")}


def test_people_read_it_as_they_would_while_it_runs(spent: Running) -> None:
    rekindle = client_of(spent)
    spent.stop()
    assert "given up" in rekindle("history", "spent").lines[1]
    assert "beyond repair" in rekindle("history", SPENT, "--bundle", "last").out
    assert rekindle("timeline", SPENT).lines[-1].startswith("Mean time between failures:")
    assert SPENT in rekindle("alerts").out
    assert "was stopped, by SIGTERM" in rekindle("events").lines[-1]


def test_whoever_is_not_remembered_is_no_such_worker(spent: Running) -> None:
    rekindle = client_of(spent)
    spent.stop()
    said = rekindle("history", "worker:spnet:0")
    assert (said.code, said.out) == (4, "")
    assert f"rekindle: nothing is remembered of 'worker:spnet:0'; did you mean {SPENT}" in said.err
    assert rekindle("history", SPENT, "--bundle", "99").code == 1


def test_one_that_never_died_is_remembered_and_bad_usage_is_told_as_ever(spent: Running) -> None:
    rekindle = client_of(spent)
    spent.stop()
    said = rekindle("history", "sound")
    assert (said.code, said.out) == (0, "worker:sound:0 has not died.\n")
    assert rekindle("events", "--topics", "bogus").code == 2
    assert rekindle("history", SPENT, "--bundle", "9" * 30).code == 2


def test_a_database_elsewhere_is_named(spent: Running, nobody: Client) -> None:
    where = str(client_of(spent).state / "rekindle.db")
    spent.stop()
    said = nobody("history", SPENT, "--database", where)
    assert (said.code, said.err) == (0, "")
    assert "given up" in said.lines[1]


def test_a_database_that_the_environment_names_is_asked_only_where_no_supervisor_runs(spent: Running) -> None:
    rekindle = client_of(spent)
    elsewhere = replace(rekindle, environment={"REKINDLE_DATABASE": "/nowhere/rekindle.db"})
    assert "given up" in elsewhere("history", SPENT).lines[1]
    spent.stop()
    assert "there is no store at /nowhere/rekindle.db" in elsewhere("history", SPENT).err


def test_looking_makes_and_changes_nothing(spent: Running, nobody: Client) -> None:
    typo = nobody.state.parent / "typo" / "rekindle.db"
    said = nobody("alerts", "--database", str(typo))
    assert (said.code, said.out) == (1, "")
    assert "there is no store at" in said.err
    assert not typo.parent.exists()
    spent.stop()
    database = spent.file.parent / ".rekindle" / "rekindle.db"
    with closing(sqlite3.connect(database, isolation_level=None)) as rows:
        rows.execute("UPDATE rekindle_alembic_version SET version_num = '0007'")
    said = nobody("history", SPENT, "--database", str(database))
    assert (said.code, said.out) == (1, "")
    assert f"is of an older Rekindle; bring it up to date with: rekindle db upgrade {database}" in said.err
    with closing(sqlite3.connect(database)) as rows:
        assert rows.execute("SELECT version_num FROM rekindle_alembic_version").fetchone() == ("0007",)


def test_the_present_is_told_by_a_supervisor_alone(spent: Running) -> None:
    rekindle = client_of(spent)
    spent.stop()
    for words in (("status",), ("explain", SPENT), ("report", SPENT), ("events", "--follow")):
        assert rekindle(*words).code == 3


def test_a_broken_database_is_told_in_one_sentence(nobody: Client) -> None:
    nobody.state.mkdir()
    (nobody.state / "rekindle.db").write_bytes(b"no database" * 100)
    said = nobody("history", SPENT)
    assert said.code == 1
    assert "is damaged" in said.err
    assert "Traceback" not in said.err
