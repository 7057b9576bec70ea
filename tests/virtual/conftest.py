"""The fixture that creates supervised systems in virtual time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.virtual.simulated_system import SimulatedSystem

from rekindle.actors.spec.worker_spec import WorkerSpec


class SystemFactory:
    """Creates systems, and ends them after the test."""

    def __init__(self) -> None:
        self._created: list[SimulatedSystem] = []

    def __call__(self, *specs: WorkerSpec, **settings: Any) -> SimulatedSystem:
        """A system with these workers; see `SimulatedSystem`."""
        system = SimulatedSystem(*specs, **settings)
        self._created.append(system)
        return system

    def close(self) -> None:
        """End every system; none of them ever ran two processes of one worker at once."""
        for each in self._created:
            each.close()
        assert [each.processes.overlaps for each in self._created if each.processes.overlaps] == []


@pytest.fixture
def new_system() -> Iterator[SystemFactory]:
    """Creates systems in virtual time."""
    factory = SystemFactory()
    yield factory
    factory.close()
