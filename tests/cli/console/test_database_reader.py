"""Without a supervisor, commands read the database: the same text and the same documents."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from tests.cli.conftest import Client
from tests.processes.waiting import eventually
from tests.running.conftest import Run, Running

SPENT = "worker:spent:0"
CONFIG = """
[worker.spent]
command = ["sh", "-c", "echo beyond repair; exit 7"]
restart = { max_in_window = 1, initial_delay_s = 0, max_delay_s = 0, min_delay_s = 0 }

[worker.sound]
command = ["sleep", "1000"]
"""
COMMANDS = [
    ("history", SPENT),
    ("history", SPENT, "--bundle", "last"),
    ("history", SPENT, "--bundle", "1"),
    ("timeline", SPENT, "--limit", "3"),
    ("timeline", "worker:sound:0"),
    ("audit",),
    ("alerts", "--all"),
    ("events", "--after", "0", "--limit", "3"),
    ("events", "--topics", "event:worker_failed:*"),
]


@pytest.fixture
def failed(run: Run) -> Running:
    """A supervisor with one failed and one healthy worker."""
    running = run(CONFIG)
    running.wait_for(SPENT, shown="failed")
    running.wait_for("worker:sound:0", status="healthy")
    return running


def client_of(running: Running) -> Client:
    return Client(running.file.parent / ".rekindle")


def test_the_database_tells_the_same_as_the_supervisor_did(failed: Running) -> None:
    rekindle = client_of(failed)
    rekindle("reset", "worker:sound:0")
    before = {words: rekindle(*words, "--json").document for words in COMMANDS}
    failed.kill()
    for words, document in before.items():
        answer = rekindle(*words, "--json")
        assert answer.code == 0
        assert answer.err == f"rekindle: no supervisor is running; reading {rekindle.state}/rekindle.db\n"
        assert _without_the_present(answer.document) == _without_the_present(document), words


def _without_the_present(document: dict[str, object]) -> object:
    """What is not about how long the present life has lasted; and the latest order may not be stored yet."""
    return {name: value for name, value in document.items() if name not in ("ever", "shown", "newest")}


def test_people_read_it_as_they_would_while_it_runs(failed: Running) -> None:
    rekindle = client_of(failed)
    failed.stop()
    assert "given up" in rekindle("history", "spent").lines[1]
    assert "beyond repair" in rekindle("history", SPENT, "--bundle", "last").out
    assert rekindle("timeline", SPENT).lines[-1].startswith("Mean time between failures:")
    assert SPENT in rekindle("alerts").out
    assert "stopped: killed by SIGTERM" in rekindle("events").lines[-1]


def test_a_process_whose_end_waits_in_a_file_is_not_shown_as_lost(failed: Running) -> None:
    """The history ended without a word, and the worker was "lost"."""
    rekindle = client_of(failed)
    assert eventually(lambda: failed.client.get("/workers")["unsaved"] == 0)
    with closing(sqlite3.connect(rekindle.state / "rekindle.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        failed.signal(signal.SIGTERM)
        assert eventually(lambda: "records are not written yet" in failed.text()), failed.text()
        failed.signal(signal.SIGTERM)  # the stop waits no longer
        assert failed.end() == 1
    answer = rekindle("status", "--json")
    shown = {each["id"]: each["shown"] for each in answer.document["workers"]}
    assert shown == {SPENT: "failed", "worker:sound:0": "stopped"}
    assert f"the next start stores them: {rekindle.state}/rekindle.db.unsaved" in answer.err


def test_a_worker_without_a_record_is_unknown(failed: Running) -> None:
    rekindle = client_of(failed)
    failed.stop()
    answer = rekindle("history", "worker:spnet:0")
    assert (answer.code, answer.out) == (4, "")
    assert f"rekindle: the database has no records of 'worker:spnet:0'; did you mean {SPENT}" in answer.err
    assert rekindle("history", SPENT, "--bundle", "99").code == 1


def test_a_worker_that_never_died_is_known_and_bad_usage_is_reported_as_usual(failed: Running) -> None:
    rekindle = client_of(failed)
    failed.stop()
    answer = rekindle("history", "sound")
    assert (answer.code, answer.out) == (0, "worker:sound:0 has not died.\n")
    assert rekindle("events", "--topics", "bogus").code == 2
    assert rekindle("history", SPENT, "--bundle", "9" * 30).code == 2


def test_a_database_elsewhere_is_named(failed: Running, no_supervisor: Client) -> None:
    where = str(client_of(failed).state / "rekindle.db")
    failed.stop()
    answer = no_supervisor("history", SPENT, "--database", where)
    assert (answer.code, answer.err) == (0, "")
    assert "given up" in answer.lines[1]


def test_a_database_that_the_environment_names_is_asked_only_where_no_supervisor_runs(
    failed: Running,
) -> None:
    rekindle = client_of(failed)
    elsewhere = replace(rekindle, environment={"REKINDLE_DATABASE": "/nowhere/rekindle.db"})
    assert "given up" in elsewhere("history", SPENT).lines[1]
    failed.stop()
    assert "there is no store at /nowhere/rekindle.db" in elsewhere("history", SPENT).err


def test_looking_makes_and_changes_nothing(failed: Running, no_supervisor: Client) -> None:
    typo = no_supervisor.state.parent / "typo" / "rekindle.db"
    answer = no_supervisor("alerts", "--database", str(typo))
    assert (answer.code, answer.out) == (1, "")
    assert "there is no store at" in answer.err
    assert not typo.parent.exists()
    failed.stop()
    database = failed.file.parent / ".rekindle" / "rekindle.db"
    with closing(sqlite3.connect(database, isolation_level=None)) as rows:
        rows.execute("UPDATE rekindle_alembic_version SET version_num = '0007'")
    answer = no_supervisor("history", SPENT, "--database", str(database))
    assert (answer.code, answer.out) == (1, "")
    assert f"is of an older Rekindle; bring it up to date with: rekindle db upgrade {database}" in answer.err
    with closing(sqlite3.connect(database)) as rows:
        assert rows.execute("SELECT version_num FROM rekindle_alembic_version").fetchone() == ("0007",)


def test_only_a_supervisor_reports_the_present_state(failed: Running) -> None:
    rekindle = client_of(failed)
    failed.stop()
    for words in (("status",), ("explain", SPENT), ("report", SPENT), ("events", "--follow")):
        assert rekindle(*words).code == 3


def test_a_broken_database_is_reported_in_one_sentence(no_supervisor: Client) -> None:
    no_supervisor.state.mkdir()
    (no_supervisor.state / "rekindle.db").write_bytes(b"no database" * 100)
    answer = no_supervisor("history", SPENT)
    assert answer.code == 1
    assert "is damaged" in answer.err
    assert "Traceback" not in answer.err
