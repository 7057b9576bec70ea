"""What every test may use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from loguru import logger

# Two noisy cores: an example that took long says nothing about the product.
settings.register_profile("rekindle", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("rekindle")


@pytest.fixture
def logs() -> Iterator[list[str]]:
    """Everything that Rekindle logs during the test, as formatted lines."""
    lines: list[str] = []
    sink = logger.add(lambda message: lines.append(str(message)), format="{level} {message}", level="DEBUG")
    logger.enable("rekindle")
    yield lines
    logger.disable("rekindle")
    logger.remove(sink)
