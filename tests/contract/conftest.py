"""The stores that the contract is tried on: memory, an SQLite file, a real PostgreSQL server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine
from tests.contract.queues import Queues
from tests.services import empty_postgres_url, postgres_service, postgres_url

from rekindle.actors.ports import Store
from rekindle.persistence import MemoryStore, open_store
from rekindle.persistence.store import SqlStore

__all__ = ["empty_postgres_url", "postgres_service", "postgres_url"]


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a database may be created, for each kind of database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'state' / 'rekindle.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def sql_store(address: str) -> Iterator[SqlStore]:
    """A new store, for each kind of database."""
    store = open_store(address)
    yield store
    store.close()


@pytest.fixture
def rows(sql_store: SqlStore, address: str) -> Iterator[Engine]:
    """A second way into the database of `sql_store`, to look at rows."""
    engine = create_engine(address.replace("postgresql:", "postgresql+psycopg:"))
    yield engine
    engine.dispose()


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A new store, for each implementation of the port."""
    if request.param == "memory":
        yield MemoryStore()
        return
    where = tmp_path / "rekindle.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    opened = open_store(where)
    yield opened
    opened.close()


@pytest.fixture
def queues(store: Store) -> Iterator[Queues]:
    """The queues of a new store, for each implementation of the port."""
    made = Queues(store)
    yield made
    made.close()


@pytest.fixture
def sql_queues(sql_store: SqlStore) -> Iterator[Queues]:
    """The queues of a new database, for each kind of database."""
    made = Queues(sql_store)
    yield made
    made.close()
