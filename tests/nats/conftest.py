"""Gateways to real NATS servers, and what must be left of them: nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.nats.scripted_events import ScriptedEvents
from tests.processes.conftest import database, marks, no_traces, run
from tests.services import NatsService, nats_service, nats_services

from rekindle.actors.gateways.nats import NatsGateway, NatsSettings
from rekindle.actors.gateways.server_identity import Identity

__all__ = ["database", "marks", "nats_service", "nats_services", "no_traces", "run"]

Gateways = Callable[..., NatsGateway]


def identity(directory: Path) -> Identity:
    """Who a test's gateway says that it is."""
    return Identity("1.2.3", 4711, time.time_ns() // 1_000_000, directory)


@pytest.fixture
def log() -> ScriptedEvents:
    """An empty log of events."""
    return ScriptedEvents()


@pytest.fixture
def gateways(tmp_path: Path, no_traces: None) -> Iterator[Gateways]:
    """Starts gateways, and stops them at the end of the test."""
    with ExitStack() as stack:

        def start(feed: Any, server: NatsService | str, **settings: Any) -> NatsGateway:
            url = server if isinstance(server, str) else server.url
            chosen = NatsSettings(servers=(url,), **settings)
            return stack.enter_context(NatsGateway(feed, chosen, identity(tmp_path)))

        yield start
