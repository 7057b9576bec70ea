"""The tables of a new SQLite database, without alembic: the statements that all migrations together make.

Loading alembic and running every revision takes half a second of CPU time at a first start. The statements
are a file beside the migrations, which a test keeps equal to them. After a new revision, write it again:

    python -m rekindle.persistence.new_database > migrations/new_database.sql

A file of an older revision does no harm: alembic then runs the missing revisions.
"""

from __future__ import annotations

import sys
import tempfile
from functools import cache
from importlib.resources import files
from pathlib import Path

from sqlalchemy import Connection

from .database.engines import BEGIN_WRITING, sqlite_engine
from .schema.migrate import VERSION_TABLE, upgrade

_BETWEEN = "\n\n"
"""Between two statements; none of them has an empty line."""
_OURS = """
    SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'
    ORDER BY CASE type WHEN 'table' THEN 0 WHEN 'index' THEN 1 ELSE 2 END, name
"""


@cache
def statements() -> tuple[str, ...]:
    """What makes the tables; the last statement says of which revision they are."""
    text = files("rekindle.migrations").joinpath("new_database.sql").read_text("utf-8")
    return tuple(text.strip().split(_BETWEEN))


def revision() -> str:
    """The revision of the tables that are made."""
    return statements()[-1].split("'")[1]


def create_tables(connection: Connection) -> None:
    """Make all tables in an empty SQLite database."""
    for statement in statements():
        connection.exec_driver_sql(statement)


def statements_of(connection: Connection) -> tuple[str, ...]:
    """The statements that make the tables of this SQLite database."""
    made = connection.exec_driver_sql(_OURS).scalars().all()
    found = connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").scalar_one()
    return (
        *("\n".join(line.rstrip() for line in sql.splitlines() if line.strip()) for sql in made),
        f"INSERT INTO {VERSION_TABLE} (version_num) VALUES ('{found}')",
    )


def migrated(path: Path) -> tuple[str, ...]:
    """The statements that make the tables of a database which the migrations set up in this file."""
    path.touch()
    engine = sqlite_engine(str(path), begin=BEGIN_WRITING, pragmas={})
    upgrade(engine, str(path))
    with engine.connect() as connection:
        return statements_of(connection)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        sys.stdout.write(_BETWEEN.join(migrated(Path(folder) / "new.db")) + "\n")
