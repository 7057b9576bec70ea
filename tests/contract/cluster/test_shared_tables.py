"""The tables of a cluster while nodes of two versions use them."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, text

from rekindle.persistence.cluster.postgres_cluster import server_url
from rekindle.persistence.cluster.shared_tables import prepare
from rekindle.persistence.database.engines import postgresql_engine
from rekindle.persistence.schema import migrate


def test_tables_that_a_newer_node_upgrades_in_the_same_moment_are_used_as_they_are(
    empty_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command of the older node was refused, although its version can use the new tables."""
    engine = postgresql_engine(server_url(empty_postgres_url), lock_timeout_ms=1000)
    upgrade = migrate.upgrade

    def late(engine: Engine, name: str) -> None:
        with engine.begin() as connection:
            connection.execute(text("UPDATE rekindle_alembic_version SET version_num = '9001'"))
        upgrade(engine, name)

    try:
        prepare(engine, "the test")
        monkeypatch.setattr(migrate, "upgrade", late)
        prepare(engine, "the test")
        with engine.begin() as connection:
            assert migrate.revision_of(connection) == "9001"
    finally:
        engine.dispose()
