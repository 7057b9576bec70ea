"""`rekindle db`, on real files."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.cli.conftest import Client
from tests.running.conftest import Running

from rekindle.persistence.schema.migrate import REVISIONS


def execute(database: Path, statement: str) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(statement)


def test_an_upgrade_creates_what_is_missing_and_leaves_what_is_current(
    no_supervisor: Client, tmp_path: Path
) -> None:
    where = str(tmp_path / "new.db")
    assert (
        no_supervisor("db", "upgrade", where).out
        == f"{where} is at revision {REVISIONS[-1]} now; it was at none.\n"
    )
    assert no_supervisor("db", "upgrade", where).out == f"{where} is already at revision {REVISIONS[-1]}.\n"
    assert no_supervisor("db", "upgrade", f"sqlite:///{where}", "--json").document["before"] == REVISIONS[-1]


def test_a_check_tells_revision_integrity_and_counts(no_supervisor: Client, tmp_path: Path) -> None:
    where = str(tmp_path / "new.db")
    no_supervisor("db", "upgrade", where)
    document = no_supervisor("db", "check", where, "--json").document
    assert (document["revision"], document["current"], document["ok"]) == (REVISIONS[-1], True, True)
    assert document["problems"] == []
    assert document["rows"]["rekindle_death"] == 0
    shown = no_supervisor("db", "check", where)
    assert "integrity  ok" in shown.lines
    assert "        0  rekindle_death" in shown.lines


def test_a_check_may_be_made_while_a_supervisor_runs_and_an_upgrade_may_not(
    web: Running, rekindle: Client
) -> None:
    where = str(rekindle.state / "rekindle.db")
    assert rekindle("db", "check", where).code == 0
    answer = rekindle("db", "upgrade", where)
    assert (answer.code, answer.out) == (1, "")
    assert f"in use by another supervisor, pid {web.process.pid}" in answer.err


def test_a_check_of_what_is_not_there_creates_nothing(no_supervisor: Client, tmp_path: Path) -> None:
    answer = no_supervisor("db", "check", str(tmp_path / "deep" / "missing.db"))
    assert (answer.code, answer.out) == (1, "")
    assert "there is no store at" in answer.err
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_not_a_database_is_reported_and_left_as_it_is(
    no_supervisor: Client, tmp_path: Path
) -> None:
    for content in (b"", b"short", b"no database " * 100):
        file = tmp_path / "odd.db"
        file.write_bytes(content)
        answer = no_supervisor("db", "check", str(file))
        assert (answer.code, answer.err.count("\n")) == (1, 1), content
        assert file.read_bytes() == content


def test_a_database_of_a_newer_rekindle_is_recognised(no_supervisor: Client, tmp_path: Path) -> None:
    where = tmp_path / "new.db"
    no_supervisor("db", "upgrade", str(where))
    execute(where, "UPDATE rekindle_alembic_version SET version_num = '9999'")
    answer = no_supervisor("db", "check", str(where))
    assert answer.code == 1
    assert "9999 (written by a newer version of Rekindle" in answer.out
    assert no_supervisor("db", "upgrade", str(where)).code == 1


def test_a_host_database_without_our_tables_is_sound_and_has_no_revision(
    no_supervisor: Client, tmp_path: Path
) -> None:
    where = tmp_path / "host.db"
    execute(where, "CREATE TABLE mine (x)")
    document = no_supervisor("db", "check", str(where), "--json").document
    assert (document["revision"], document["current"], document["ok"], document["rows"]) == (
        None,
        False,
        True,
        {},
    )


def test_an_address_that_makes_no_sense_is_refused_in_a_sentence(no_supervisor: Client) -> None:
    answer = no_supervisor("db", "check", "mysql://host/db")
    assert answer.code == 1
    assert "neither an SQLite file nor a PostgreSQL database" in answer.err


def test_a_database_on_a_server_is_upgraded_and_checked(
    no_supervisor: Client, empty_postgres_url: str
) -> None:
    assert no_supervisor("db", "check", empty_postgres_url, "--json").document["revision"] is None
    assert no_supervisor("db", "upgrade", empty_postgres_url, "--json").document["revision"] == REVISIONS[-1]
    document = no_supervisor("db", "check", empty_postgres_url, "--json").document
    assert (document["current"], document["rows"]["rekindle_death"]) == (True, 0)
