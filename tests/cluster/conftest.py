"""Real clusters: agents as processes of their own, one PostgreSQL, all on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.nodes import Nodes
from tests.services import postgres_service, postgres_url

__all__ = ["postgres_service", "postgres_url"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each agent is a program that starts, and some wait for leases to run out."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.timeout(400))


@pytest.fixture
def nodes(postgres_url: str, tmp_path: Path) -> Iterator[Nodes]:
    """Starts nodes of one cluster, and ends them; no process is left."""
    made = Nodes(postgres_url, tmp_path)
    yield made
    made.close()
