"""Deaths are read without being the store's supervisor, while one is at work or after it is gone."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine, text
from tests.contract.records import TAG, death, final_death

from rekindle.actors.errors import StoreDamagedError, StoreTooNewError, StoreUnavailableError
from rekindle.persistence.past_deaths import recorded_deaths
from rekindle.persistence.store import SqlStore


def test_deaths_are_read_beside_the_supervisor_newest_first(sql_store: SqlStore, address: str) -> None:
    sql_store.commit([death(1), death(2), final_death(3), death(1, component_id="worker:other:0")])
    assert [each.generation for each in recorded_deaths(address, TAG)] == [3, 2, 1]
    assert [each.generation for each in recorded_deaths(address, TAG, limit=1)] == [3]
    assert recorded_deaths(address, TAG) == sql_store.deaths(TAG)
    assert recorded_deaths(address, "worker:absent:0") == ()


def test_a_store_of_a_newer_rekindle_is_not_guessed_at(
    sql_store: SqlStore, rows: Engine, address: str
) -> None:
    with rows.begin() as connection:
        connection.execute(text("UPDATE rekindle_alembic_version SET version_num = '9999'"))
    with pytest.raises(StoreTooNewError, match="newer Rekindle"):
        recorded_deaths(address, TAG)


def test_a_missing_store_is_reported_and_nothing_is_created(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match="there is no store"):
        recorded_deaths(tmp_path / "none.db", TAG)
    (tmp_path / "text.db").write_text("no database " * 100)
    with pytest.raises(StoreDamagedError):
        recorded_deaths(tmp_path / "text.db", TAG)
    assert [each.name for each in tmp_path.iterdir()] == ["text.db"]
