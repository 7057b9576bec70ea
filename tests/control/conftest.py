"""Real systems behind real unix sockets, and nothing left of them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.control.operator_double import OperatorDouble
from tests.processes.conftest import Run, database, marks, no_traces, run
from tests.processes.policies import sleeper

from rekindle.actors import Status, System, WorkerSpec
from rekindle.actors.gateways.control import ControlServer
from rekindle.cli.client import ControlClient

__all__ = ["database", "marks", "no_traces", "run"]

WORKER = "worker:tag:0"


@dataclass(frozen=True)
class Served:
    """A system, its operator, its control socket, and a client."""

    system: System
    operator: OperatorDouble
    server: ControlServer
    client: ControlClient

    @property
    def path(self) -> Path:
        """The socket."""
        return self.server.path

    def curl(self, path: str, *options: str) -> tuple[int, dict[str, Any]]:
        """The status and the document that curl gets; no option given twice."""
        url = f"http://rekindle/api/v1{path}"
        command = ["curl", "-sS", "--max-time", "20", "--unix-socket", str(self.path), "-w", "\n%{http_code}"]
        done = subprocess.run([*command, *options, url], capture_output=True, text=True, check=True)
        body, _, status = done.stdout.rpartition("\n")
        return int(status), json.loads(body)


Serve = Callable[..., Served]


@pytest.fixture
def serve(run: Run, tmp_path: Path) -> Iterator[Serve]:
    """Starts a system with these workers behind a socket of its own."""
    with ExitStack() as stack:

        def serve(*specs: WorkerSpec, directory: str = "state") -> Served:
            system = run(*(specs or (sleeper(WORKER),)))
            operator = OperatorDouble(system)
            server = ControlServer(operator, tmp_path / directory)
            stack.callback(operator.stops_may_end.set)
            stack.callback(operator.store_is_back.set)
            stack.callback(server.stop)
            server.start()
            return Served(system, operator, server, ControlClient(server.path))

        yield serve


@pytest.fixture
def served(serve: Serve) -> Served:
    """One sleeping worker behind a socket; it runs."""
    served = serve()
    served.system.wait_until(WORKER, lambda worker: worker.pid is not None, timeout_s=20)
    assert served.system.status(WORKER).status in (Status.PENDING, Status.HEALTHY)
    return served
