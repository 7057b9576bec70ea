"""Gateways that export traces to real collectors, and what must be left of them: nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import pytest
from tests.control.operator_double import OperatorDouble
from tests.otel.collector import Collector, collecting
from tests.processes.conftest import database, marks, no_traces, run

from rekindle.actors import System
from rekindle.actors.gateways.otel import OtelGateway, OtelSettings
from rekindle.actors.gateways.server_identity import Identity

__all__ = ["database", "marks", "no_traces", "run"]


class Export(Protocol):
    """Starts a gateway that exports the traces of a system."""

    def __call__(self, system: System, endpoint: str, **settings: Any) -> OtelGateway: ...


@pytest.fixture
def collector() -> Iterator[Collector]:
    """A collector that takes everything."""
    with collecting() as collector:
        yield collector


@pytest.fixture
def export(tmp_path: Path, collector: Collector) -> Iterator[Export]:
    """Starts gateways, and stops them at the end of the test, before the systems and the collector."""
    with ExitStack() as stack:

        def start(system: System, endpoint: str, **settings: Any) -> OtelGateway:
            identity = Identity("1.2.3", 4711, time.time_ns() // 1_000_000, tmp_path)
            chosen = OtelSettings(endpoint=endpoint, **settings)
            return stack.enter_context(OtelGateway(OperatorDouble(system), chosen, identity))

        yield start
