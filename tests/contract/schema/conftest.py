"""The tests of the tables begin without any."""

from __future__ import annotations

import pytest


@pytest.fixture
def postgres_url(empty_postgres_url: str) -> str:
    """The address of an empty database on a real server."""
    return empty_postgres_url
