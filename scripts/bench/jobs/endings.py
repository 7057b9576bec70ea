"""Counts in the database itself how often each job was given an end, apart from the code that is judged."""

from __future__ import annotations

from contextlib import closing
from typing import Any

SQLITE = """
CREATE TABLE fair_endings (job INTEGER NOT NULL);
CREATE TRIGGER count_fair_endings AFTER UPDATE OF state ON rekindle_job
WHEN NEW.state NOT IN ('running', 'pending')
BEGIN INSERT INTO fair_endings VALUES (NEW.id); END;
"""
POSTGRESQL = """
CREATE TABLE fair_endings (job BIGINT NOT NULL);
CREATE FUNCTION count_fair_ending() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO fair_endings VALUES (NEW.id); RETURN NEW; END $$;
CREATE TRIGGER count_fair_endings AFTER UPDATE OF state ON rekindle_job FOR EACH ROW
WHEN (NEW.state NOT IN ('running', 'pending'))
EXECUTE FUNCTION count_fair_ending();
"""
TWICE = "SELECT job FROM fair_endings GROUP BY job HAVING count(*) > 1"


def count_endings(where: str) -> None:
    """Have the database note every end of a job."""
    with closing(_connected(where)) as connection:
        if _is_server(where):
            connection.execute(POSTGRESQL)
        else:
            connection.executescript(SQLITE)
        connection.commit()


def ended_twice(where: str) -> tuple[int, ...]:
    """The jobs that were given more than one end."""
    with closing(_connected(where)) as connection:
        return tuple(row[0] for row in connection.execute(TWICE).fetchall())


def _is_server(where: str) -> bool:
    return where.startswith("postgresql")


def _connected(where: str) -> Any:
    if _is_server(where):
        import psycopg

        return psycopg.connect(where)
    import sqlite3

    return sqlite3.connect(where.removeprefix("sqlite:///"))
