"""The tables of a cluster while its nodes are upgraded, one after the other.

    tables older ─ every living node can go on with the new ones ─▶ upgraded by the first newer node
                 ─ else ─▶ the newer node waits
    tables newer ─ they say that this version can use them ─▶ used as they are
                 ─ else ─▶ refused

A version says with the tables from which revision on its predecessors can use them (`COMPATIBLE_FROM`). It is
a row of `rekindle_meta`.
"""

from __future__ import annotations

from sqlalchemy import Connection, Engine, text

from rekindle import __version__
from rekindle.actors.errors import StoreTooNewError, StoreUnavailableError

from ..schema import migrate

KEY = "compatible_from"
FIRST = "0019"
"""The first revision with tables of a cluster."""

_READ = text("SELECT value FROM rekindle_meta WHERE key = :key")
_WRITE = text(
    """INSERT INTO rekindle_meta (key, value) VALUES (:key, :value)
    ON CONFLICT (key) DO UPDATE SET value = excluded.value"""
)
_OTHERS = text(
    """SELECT name, version FROM rekindle_node
    WHERE version <> :version AND state NOT IN ('lost', 'left')
        AND lease_until_ms > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint) ORDER BY name"""
)


def prepare(engine: Engine, name: str) -> None:
    """Bring the tables up to date, unless they are newer and can be used as they are.

    Raises:
        StoreTooNewError: this version is too old for them.
        StoreUnavailableError: nodes of an older version could not go on with the tables of this one.
    """
    with engine.begin() as connection:
        found = migrate.revision_of(connection)
        stored = None if found is None else _stored(connection)
        if found is not None and found not in migrate.REVISIONS:
            _see_whether_usable(name, found, stored)
            return
        if found == migrate.REVISIONS[-1]:
            _note(connection, stored)
            return
        if found is not None and (stored or found) < migrate.COMPATIBLE_FROM:
            _see_whether_alone(connection, name)
    migrate.upgrade(engine, name)
    with engine.begin() as connection:
        if migrate.revision_of(connection) == migrate.REVISIONS[-1]:
            _note(connection, _stored(connection))


def _stored(connection: Connection) -> str | None:
    found = connection.execute(_READ, {"key": KEY}).scalar()
    return None if found is None else str(found)


def _note(connection: Connection, stored: str | None) -> None:
    if stored != migrate.COMPATIBLE_FROM:
        connection.execute(_WRITE, {"key": KEY, "value": migrate.COMPATIBLE_FROM})


def _see_whether_usable(name: str, found: str, stored: str | None) -> None:
    if stored is None or stored > migrate.REVISIONS[-1]:
        needed = "" if stored is None else f", and need a version that knows {stored}"
        raise StoreTooNewError(
            f"the tables of the cluster in {name} are of a newer Rekindle (revision {found}{needed};"
            f" this is {__version__}, which knows {migrate.REVISIONS[-1]}): upgrade this node"
        )


def _see_whether_alone(connection: Connection, name: str) -> None:
    others = [f"{row.name} ({row.version})" for row in connection.execute(_OTHERS, {"version": __version__})]
    if others:
        raise StoreUnavailableError(
            f"the tables of the cluster in {name} must be upgraded for this version ({__version__}), and"
            f" {', '.join(others)} could not go on with them: stop these nodes first"
        )
