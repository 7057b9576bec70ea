"""The real `rekindle`, run against a real `rekindle run` with its own state directory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.processes.waiting import PATIENCE_S
from tests.running.conftest import IMPORT_PATH, Run, Running, run
from tests.services import empty_postgres_url, postgres_service, postgres_url

__all__ = ["empty_postgres_url", "postgres_service", "postgres_url", "run"]

COMMAND = [sys.executable, "-m", "rekindle.cli"]

EVERY_STATE = """
[worker.web]
command = ["sleep", "1000"]
count = 2

[worker.flaky]
command = ["sh", "-c", "exit 3"]
restart = { initial_delay_s = 1000, max_delay_s = 1000 }

[worker.spent]
command = ["sh", "-c", "kill -SEGV $$"]
restart = { max_in_window = 1, initial_delay_s = 0, min_delay_s = 0 }

[worker.mute]
command = ["sleep", "1000"]
reports_health = true
health = { startup_timeout_s = 1000 }
stop = { ask_s = 0.1 }

[worker.late]
command = ["sleep", "1000"]
after = ["mute"]

[worker.chatty]
command = ["sh", "-c", '''printf 'plain\\n\\033[2Jdrawn\\n'; exec sleep 1000''']
"""
"""One worker in each state."""


@dataclass(frozen=True)
class Result:
    """The output and the exit code of one command."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Standard output, parsed as one JSON document."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        """The lines of standard output."""
        return self.out.splitlines()


@dataclass(frozen=True)
class Client:
    """`rekindle` for one state directory."""

    state: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, *arguments: str) -> Result:
        done = subprocess.run(
            [*COMMAND, *arguments],
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S * 2,
            stdin=subprocess.DEVNULL,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def running(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """Run a command that does not end by itself; it is killed at the end of the block."""
        process = subprocess.Popen(
            [*COMMAND, *arguments],
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate(timeout=PATIENCE_S)

    @property
    def variables(self) -> dict[str, str]:
        """The environment of a command."""
        plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
        return {**plain, "PYTHONPATH": IMPORT_PATH, "REKINDLE_STATE": str(self.state), **self.environment}


@pytest.fixture
def no_supervisor(tmp_path: Path) -> Client:
    """A state directory without a supervisor."""
    return Client(tmp_path / "nothing")


@pytest.fixture(scope="module")
def every_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A supervisor with a worker in each state; shared, so tests must not change it."""
    file = tmp_path_factory.mktemp("every_state") / "workers.toml"
    file.write_text(EVERY_STATE)
    running = Running(file)
    try:
        running.wait_for("worker:web:1", status="healthy")
        running.wait_for("worker:flaky:0", shown="crashed")
        running.wait_for("worker:spent:0", shown="failed")
        running.wait_for("worker:late:0", waits_for=["worker:mute:0"])
        yield client_of(running)
    finally:
        running.stop()


def client_of(running: Running) -> Client:
    """`rekindle` for a supervisor."""
    return Client(running.file.parent / ".rekindle")


@pytest.fixture
def web(run: Run) -> Running:
    """Two workers of one group that sleep, for tests that change something."""
    running = run('[worker.web]\ncommand = ["sleep", "1000"]\ncount = 2\n')
    running.wait_for("worker:web:0", status="healthy")
    running.wait_for("worker:web:1", status="healthy")
    return running


@pytest.fixture
def rekindle(web: Running) -> Client:
    """`rekindle` for the two sleepers."""
    return client_of(web)
