"""Checks a store without owning it: revision, integrity, counters against the history, number of rows.

Nothing is created, migrated or locked, so a store may be checked while a supervisor uses it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

import msgspec
from sqlalchemy import Connection, case, func, inspect, select, text

from rekindle.actors.deaths.death import Action
from rekindle.actors.facts.records import RECENT_DEATHS

from .database.driver_errors import translated
from .database.read_only_engine import read_only_engine
from .schema import migrate
from .schema.migrate import REVISIONS, revision_of
from .schema.tables import DEATH, METADATA, POLICY
from .sql.encoding import WITHOUT_DETAILS


class StoreCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a check."""

    name: str
    """The file, or the address without its password."""
    revision: str | None
    """None: Rekindle has never used the database."""
    newest: str
    problems: tuple[str, ...]
    """The problems that the database reports; empty if it is intact."""
    miscounts: tuple[str, ...]
    """Workers whose restart counter differs from their history; empty if all agree."""
    rows: Mapping[str, int]
    """How many rows each of our tables has; missing tables are left out."""

    @property
    def current(self) -> bool:
        """Whether there is nothing to upgrade."""
        return self.revision == self.newest

    @property
    def known(self) -> bool:
        """Whether this Rekindle can use it, after an upgrade if needed."""
        return self.revision is None or self.revision in REVISIONS


def check_store(where: str | os.PathLike[str]) -> StoreCheck:
    """Check a store.

    Args:
        where: the path of an SQLite file, `sqlite:///path`, or `postgresql://…`.

    Raises:
        StoreDamagedError: it is not a database, or too corrupt to be checked.
        StoreUnavailableError: it does not exist, or cannot be read now.
        StoreError: the address is invalid.
    """
    engine, name = read_only_engine(os.fspath(where))
    with translated(name), engine.connect() as connection:
        problems, revision = _problems(connection), revision_of(connection)
        return StoreCheck(
            name=name,
            revision=revision,
            newest=REVISIONS[-1],
            problems=problems,
            miscounts=() if problems or revision != REVISIONS[-1] else tuple(_miscounts(connection)),
            rows={} if problems else _rows(connection),
        )


def is_current(where: str | os.PathLike[str]) -> bool:
    """Whether a store's tables are those of this Rekindle.

    Raises:
        StoreError: like `check_store`.
    """
    engine, name = read_only_engine(os.fspath(where))
    with translated(name), engine.connect() as connection:
        return migrate.is_current(connection, name)


def _problems(connection: Connection) -> tuple[str, ...]:
    if connection.dialect.name != "sqlite":
        return ()  # PostgreSQL checks its own pages
    found = connection.execute(text("PRAGMA integrity_check(10)")).scalars()
    return tuple(" ".join(line.replace("***", " ").split()) for line in found if line != "ok")


def _miscounts(connection: Connection) -> Iterator[str]:
    """Compare every counter with the history: what was counted, and what resets took off the counter.

    Old deaths are deleted, and of a long outage there may be one row for many restarts; then the history
    has fewer.
    """
    of_worker = DEATH.c.component_id == POLICY.c.component_id
    restarts = case((DEATH.c.action == Action.RESTART, 1), else_=0)
    partial = case((DEATH.c.reason.like(f"%{WITHOUT_DETAILS}"), 1), else_=0)
    counted = POLICY.c.restart_count + POLICY.c.restarts_before_reset
    rows = connection.execute(
        select(
            POLICY.c.component_id,
            counted,
            func.coalesce(func.sum(restarts), 0),
            func.coalesce(func.sum(partial), 0),
            func.count(DEATH.c.id),
        )
        .select_from(POLICY.outerjoin(DEATH, of_worker))
        .group_by(POLICY.c.component_id, counted)
        .order_by(POLICY.c.component_id)
    )
    for worker, stored, history, partial_rows, deaths in rows:
        may_lack = bool(partial_rows) or deaths >= RECENT_DEATHS
        if stored < history or (stored > history and not may_lack):
            yield f"{worker}: {stored} restarts were counted, the history has {history}"


def _rows(connection: Connection) -> dict[str, int]:
    there = set(inspect(connection).get_table_names())
    return {
        table.name: connection.scalar(select(func.count()).select_from(table)) or 0
        for table in METADATA.sorted_tables
        if table.name in there
    }
