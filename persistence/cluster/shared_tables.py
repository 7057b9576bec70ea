"""The tables of a cluster while its nodes are upgraded, one after the other.

    tables older ─ every living node can continue with the new ones ─▶ upgraded by the first newer node
                 ─ else ─▶ the newer node waits
    tables newer ─ they say that this version can use them ─▶ used as they are
                 ─ else ─▶ refused

A version says with the tables from which revision on its predecessors can use them (`COMPATIBLE_FROM`), and
which revision it knows itself. Both are rows of `rekindle_meta`.
"""

from __future__ import annotations

from sqlalchemy import Connection, Engine, text

from rekindle import __version__
from rekindle.actors.errors import StoreTooNewError, StoreUnavailableError

from ..schema import migrate

KEY = "compatible_from"
KNOWS = "knows "
"""Before a version: the newest revision that it knows."""
FIRST = "0019"
"""The first revision with tables of a cluster."""

_READ = text("SELECT value FROM rekindle_meta WHERE key = :key")
_WRITE = text(
    """INSERT INTO rekindle_meta (key, value) VALUES (:key, :value)
    ON CONFLICT (key) DO UPDATE SET value = excluded.value"""
)
_OTHERS = text(
    """SELECT name, version FROM rekindle_node
    LEFT JOIN rekindle_meta ON key = :knows || version
    WHERE version <> :version AND state NOT IN ('lost', 'left')
        AND lease_until_ms > CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)
        AND coalesce(value, '') < :needed ORDER BY name"""
)


def prepare(engine: Engine, name: str) -> None:
    """Bring the tables up to date, unless they are newer and can be used as they are.

    Raises:
        StoreTooNewError: this version is too old for them.
        StoreUnavailableError: nodes of an older version could not continue with the tables of this one.
    """
    with engine.begin() as connection:
        found = migrate.revision_of(connection)
        if found is not None and found not in migrate.REVISIONS:
            _see_whether_usable(name, found, _stored(connection, KEY))
            _note(connection, KNOWS + __version__, migrate.REVISIONS[-1])
            return
        if found is not None and FIRST <= found < migrate.REVISIONS[-1]:
            _see_whether_others_go_on(connection, name)
    try:
        migrate.upgrade(engine, name)
    except StoreTooNewError:  # a newer node has upgraded them in this moment; they may be usable
        prepare(engine, name)
        return
    with engine.begin() as connection:
        _note(connection, KNOWS + __version__, migrate.REVISIONS[-1])
        if migrate.revision_of(connection) == migrate.REVISIONS[-1]:
            _note(connection, KEY, migrate.COMPATIBLE_FROM)


def _stored(connection: Connection, key: str) -> str | None:
    found = connection.execute(_READ, {"key": key}).scalar()
    return None if found is None else str(found)


def _note(connection: Connection, key: str, value: str) -> None:
    if _stored(connection, key) != value:
        connection.execute(_WRITE, {"key": key, "value": value})


def _see_whether_usable(name: str, found: str, stored: str | None) -> None:
    if stored is None or stored > migrate.REVISIONS[-1]:
        needed = "" if stored is None else f", and need a version that knows {stored}"
        raise StoreTooNewError(
            f"the tables of the cluster in {name} are of a newer Rekindle (revision {found}{needed};"
            f" this is {__version__}, which knows {migrate.REVISIONS[-1]}): upgrade this node"
        )


def _see_whether_others_go_on(connection: Connection, name: str) -> None:
    ours = {"version": __version__, "knows": KNOWS, "needed": migrate.COMPATIBLE_FROM}
    others = [f"{row.name} ({row.version})" for row in connection.execute(_OTHERS, ours)]
    if others:
        raise StoreUnavailableError(
            f"the tables of the cluster in {name} must be upgraded for this version ({__version__}), and"
            f" {', '.join(others)} could not continue with them: stop these nodes first"
        )
