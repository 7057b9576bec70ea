"""Real supervisors for the live view, one for all tests that leave it as they found it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.cli.conftest import every_state, no_supervisor, run
from tests.running.conftest import Run, Running

__all__ = ["every_state", "no_supervisor", "run"]

WEB = '[worker.web]\ncommand = ["sleep", "1000"]\ncount = 2\n'


def are_healthy(running: Running) -> Running:
    """The supervisor, once its two workers are healthy."""
    running.wait_for("worker:web:0", status="healthy")
    running.wait_for("worker:web:1", status="healthy")
    return running


@pytest.fixture(scope="module")
def shared_web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Two workers of one group that sleep."""
    file = tmp_path_factory.mktemp("web") / "workers.toml"
    file.write_text(WEB)
    running = Running(file)
    try:
        yield running
    finally:
        running.stop()


@pytest.fixture
def web(shared_web: Running) -> Running:
    """The same, for tests that kill and restart these; both are healthy when it is over."""
    return are_healthy(shared_web)


@pytest.fixture
def lonely_web(run: Run) -> Running:
    """Two that sleep, for a test that kills their supervisor."""
    return are_healthy(run(WEB))
