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
    nobody: Client, tmp_path: Path
) -> None:
    where = str(tmp_path / "new.db")
    assert (
        nobody("db", "upgrade", where).out == f"{where} is at revision {REVISIONS[-1]} now; before: none.\n"
    )
    assert nobody("db", "upgrade", where).out == f"{where} was at revision {REVISIONS[-1]} already.\n"
    assert nobody("db", "upgrade", f"sqlite:///{where}", "--json").document["before"] == REVISIONS[-1]


def test_a_check_tells_revision_integrity_and_counts(nobody: Client, tmp_path: Path) -> None:
    where = str(tmp_path / "new.db")
    nobody("db", "upgrade", where)
    document = nobody("db", "check", where, "--json").document
    assert (document["revision"], document["current"], document["ok"]) == (REVISIONS[-1], True, True)
    assert document["problems"] == []
    assert document["rows"]["rekindle_death"] == 0
    shown = nobody("db", "check", where)
    assert "integrity  ok" in shown.lines
    assert "        0  rekindle_death" in shown.lines


def test_a_check_may_be_made_while_a_supervisor_runs_and_an_upgrade_may_not(
    web: Running, rekindle: Client
) -> None:
    where = str(rekindle.state / "rekindle.db")
    assert rekindle("db", "check", where).code == 0
    said = rekindle("db", "upgrade", where)
    assert (said.code, said.out) == (1, "")
    assert f"in use by another supervisor, pid {web.process.pid}" in said.err


def test_a_check_of_what_is_not_there_creates_nothing(nobody: Client, tmp_path: Path) -> None:
    said = nobody("db", "check", str(tmp_path / "deep" / "missing.db"))
    assert (said.code, said.out) == (1, "")
    assert "there is no store at" in said.err
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database_is_named_so_and_left_as_it_is(nobody: Client, tmp_path: Path) -> None:
    for content in (b"", b"short", b"no database " * 100):
        file = tmp_path / "odd.db"
        file.write_bytes(content)
        said = nobody("db", "check", str(file))
        assert (said.code, said.err.count("\n")) == (1, 1), content
        assert file.read_bytes() == content


def test_a_database_of_a_newer_rekindle_is_told_apart(nobody: Client, tmp_path: Path) -> None:
    where = tmp_path / "new.db"
    nobody("db", "upgrade", str(where))
    execute(where, "UPDATE rekindle_alembic_version SET version_num = '9999'")
    said = nobody("db", "check", str(where))
    assert said.code == 1
    assert "9999 (written by a newer Rekindle" in said.out
    assert nobody("db", "upgrade", str(where)).code == 1


def test_a_host_database_without_our_tables_is_sound_and_has_no_revision(
    nobody: Client, tmp_path: Path
) -> None:
    where = tmp_path / "host.db"
    execute(where, "CREATE TABLE mine (x)")
    document = nobody("db", "check", str(where), "--json").document
    assert (document["revision"], document["current"], document["ok"], document["rows"]) == (
        None,
        False,
        True,
        {},
    )


def test_an_address_that_makes_no_sense_is_refused_in_a_sentence(nobody: Client) -> None:
    said = nobody("db", "check", "mysql://host/db")
    assert said.code == 1
    assert "neither an SQLite file nor a PostgreSQL database" in said.err


def test_a_database_on_a_server_is_upgraded_and_checked(nobody: Client, postgres_url: str) -> None:
    assert nobody("db", "check", postgres_url, "--json").document["revision"] is None
    assert nobody("db", "upgrade", postgres_url, "--json").document["revision"] == REVISIONS[-1]
    document = nobody("db", "check", postgres_url, "--json").document
    assert (document["current"], document["rows"]["rekindle_death"]) == (True, 0)
