"""The tables of a new SQLite database: the same as those that the migrations make, without alembic."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from rekindle.persistence import new_database, open_store
from rekindle.persistence.schema.migrate import REVISIONS, downgrade, revision_of

WRITE_IT_AGAIN = "run: python -m rekindle.persistence.new_database > migrations/new_database.sql"


def test_a_new_database_has_the_tables_that_the_migrations_make(tmp_path: Path) -> None:
    assert new_database.statements() == new_database.migrated(tmp_path / "migrated.db"), WRITE_IT_AGAIN
    assert new_database.revision() == REVISIONS[-1], WRITE_IT_AGAIN


def test_a_new_database_is_made_of_the_statements_and_of_nothing_else(tmp_path: Path) -> None:
    open_store(tmp_path / "new.db").close()
    with create_engine(f"sqlite:///{tmp_path / 'new.db'}").connect() as connection:
        assert new_database.statements_of(connection) == new_database.statements()


def test_the_migrations_that_the_statements_lack_are_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path / "older.db")
    downgrade(store._writer, REVISIONS[-2])
    with store._writer.connect() as connection:
        older = new_database.statements_of(connection)
    store.close()
    assert older != new_database.statements()
    monkeypatch.setattr(new_database, "statements", lambda: older)
    open_store(tmp_path / "new.db").close()
    with create_engine(f"sqlite:///{tmp_path / 'new.db'}").connect() as connection:
        assert revision_of(connection) == REVISIONS[-1]


def test_a_new_database_loads_no_alembic(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom rekindle.persistence import open_store\n"
        f"open_store({str(tmp_path / 'new.db')!r}).close()\nprint('alembic' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
