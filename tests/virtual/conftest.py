"""What every test in virtual time may use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.virtual.bench import Bench

from rekindle.actors.spec.worker_spec import WorkerSpec


class Benches:
    """Sets up systems, and ends them after the test."""

    def __init__(self) -> None:
        self._made: list[Bench] = []

    def __call__(self, *specs: WorkerSpec, **settings: Any) -> Bench:
        """A system with these workers; see `Bench`."""
        made = Bench(*specs, **settings)
        self._made.append(made)
        return made

    def close(self) -> None:
        """End every system; none of them ever ran two processes of one worker at once."""
        for each in self._made:
            each.close()
        assert [each.processes.overlaps for each in self._made if each.processes.overlaps] == []


@pytest.fixture
def bench() -> Iterator[Benches]:
    """Makes systems in virtual time."""
    benches = Benches()
    yield benches
    benches.close()
