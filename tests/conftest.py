"""What every test may use."""

from __future__ import annotations

import gc
import signal
from collections.abc import Generator, Iterator
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, settings
from loguru import logger
from tests.leftovers import start_watcher

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


def pytest_sessionstart() -> None:
    """Whatever happens to this process, what it has started ends with it."""
    start_watcher()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage meanwhile: it takes a fifth of the time and finds none.

    What is there then lasts to the end, so that later searches, of 0.3 s each, need not look at it.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture
def logs() -> Iterator[list[str]]:
    """Everything that Rekindle logs during the test, as formatted lines."""
    lines: list[str] = []
    sink = logger.add(lambda message: lines.append(str(message)), format="{level} {message}", level="DEBUG")
    logger.enable("rekindle")
    yield lines
    logger.disable("rekindle")
    logger.remove(sink)
