"""Every table has a model, whose attributes are the columns."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import create_engine, select
from sqlalchemy.orm import Mapper, Session

from rekindle.actors.facts.records import EventRecord
from rekindle.persistence import open_store
from rekindle.persistence.schema.models import EventRow, Model
from rekindle.persistence.schema.tables import METADATA

MAPPERS = sorted(Model.registry.mappers, key=lambda mapper: mapper.class_.__name__)


def test_every_table_has_a_model() -> None:
    assert {mapper.local_table for mapper in MAPPERS} == set(METADATA.tables.values())


@pytest.mark.parametrize("mapper", MAPPERS, ids=lambda mapper: mapper.class_.__name__)
def test_the_attributes_of_a_model_are_the_columns_of_its_table(mapper: Mapper[Model]) -> None:
    assert list(mapper.column_attrs.keys()) == [column.name for column in mapper.local_table.columns]
    assert mapper.class_.__doc__


def test_a_host_queries_a_model_by_its_attributes(tmp_path: Path) -> None:
    where = tmp_path / "rekindle.db"
    store = open_store(where)
    store.commit([EventRecord(id=1, at_wall_ms=5, type="worker_started", component_id="a", payload="{}")])
    store.close()
    engine = create_engine(f"sqlite:///{where}")
    with Session(engine) as session:
        (row,) = session.scalars(select(EventRow).where(EventRow.at_wall_ms == 5))
        assert (row.id, row.component_id) == (1, "a")
    engine.dispose()


def test_a_store_does_without_the_orm(tmp_path: Path) -> None:
    script = (
        "import sys; from rekindle.persistence import open_store; "
        "open_store(sys.argv[1]).close(); first = 'sqlalchemy.orm' in sys.modules; print(first)"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "state" / "rekindle.db")]
    environment = {"PYTHONPATH": "scripts/import_root"}
    subprocess.run(command, env=environment, check=True, capture_output=True)
    again = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert again.stdout == "False\n"
