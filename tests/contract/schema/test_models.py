"""The typed models and the tables say the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from sqlalchemy.orm import Mapper

from rekindle.persistence.schema.models import Model
from rekindle.persistence.schema.tables import METADATA

MAPPERS = sorted(Model.registry.mappers, key=lambda mapper: mapper.class_.__name__)


def test_every_table_has_a_model() -> None:
    assert {mapper.local_table for mapper in MAPPERS} == set(METADATA.tables.values())


@pytest.mark.parametrize("mapper", MAPPERS, ids=lambda mapper: mapper.class_.__name__)
def test_a_model_has_the_types_of_its_table(mapper: Mapper[Model]) -> None:
    hints = get_type_hints(mapper.class_)
    for column in mapper.columns:
        (said,) = get_args(hints[column.name])
        assert said == (column.type.python_type | None if column.nullable else column.type.python_type)


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
