"""What every test may use."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, settings
from loguru import logger

# Two noisy cores: an example that took long says nothing about the product.
settings.register_profile("rekindle", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("rekindle")

# A shell starts what it puts into the background with these ignored, and programs inherit that:
# a test that presses Ctrl-C must find it as a terminal would have it.
for _number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        with suppress(ValueError):  # not in the main thread
            _default = signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL
            signal.signal(_number, _default)


def pytest_collection_finish() -> None:
    """Spare the collector what lasts to the end: a search among nine thousand tests takes 0.3 s."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def logs() -> Iterator[list[str]]:
    """Everything that Rekindle logs during the test, as formatted lines."""
    lines: list[str] = []
    sink = logger.add(lambda message: lines.append(str(message)), format="{level} {message}", level="DEBUG")
    logger.enable("rekindle")
    yield lines
    logger.disable("rekindle")
    logger.remove(sink)
