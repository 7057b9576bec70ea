"""Plain programs that are ready when their output, a port, a page or a program says so."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tests.processes.conftest import Run
from tests.processes.policies import shell, worker
from tests.processes.waiting import eventually
from tests.web.dashboards import free_port

from rekindle.actors import Cause, HealthPolicy, ReadyPolicy, Status, WorkerSpec, command
from rekindle.actors.spec.probe import CommandProbe, HttpProbe, TcpProbe

PATIENCE_S = 20.0
NEVER = HealthPolicy(startup_timeout_s=0.4)


def server(port: int, ready: ReadyPolicy, gate: Path) -> WorkerSpec:
    """A server that listens when the gate, a FIFO, is opened for writing."""
    os.mkfifo(gate)
    serve = f"s.test(s.SimpleHTTPRequestHandler, port={port}, bind='127.0.0.1')"
    program = f"import http.server as s; open({str(gate)!r}).close(); {serve}"
    return worker("server", command(sys.executable, "-c", program), ready=ready)


@pytest.mark.parametrize("kind", ["tcp", "http", "both"])
def test_a_server_is_starting_until_it_answers(run: Run, kind: str, tmp_path: Path) -> None:
    port, gate = free_port(), tmp_path / "gate"
    tcp, http = TcpProbe(f"127.0.0.1:{port}"), HttpProbe(f"http://127.0.0.1:{port}/")
    ready = {
        "tcp": ReadyPolicy(tcp=tcp),
        "http": ReadyPolicy(http=http),
        "both": ReadyPolicy(tcp=tcp, http=http),
    }
    system = run(server(port, ready[kind], gate))
    assert eventually(lambda: "refused" in " ".join(system.status("server").not_ready))
    assert system.status("server").shown == "starting"
    gate.write_bytes(b"")
    system.wait_for("server", Status.HEALTHY, timeout_s=PATIENCE_S)
    assert system.status("server").not_ready == ()


def test_a_program_is_ready_when_its_output_says_so(run: Run, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    script = f"echo begins; until [ -e {gate} ]; do sleep 0.02; done; echo 'now listening' >&2; sleep 1000"
    system = run(shell("talker", script, ready=ReadyPolicy(output="listen.*ng")))
    assert eventually(lambda: system.output("talker") == ("begins",))
    assert eventually(lambda: system.status("talker").not_ready == ("output matching /listen.*ng/",))
    assert system.status("talker").shown == "starting"
    gate.touch()
    system.wait_for("talker", Status.HEALTHY, timeout_s=PATIENCE_S)


def test_a_line_that_came_before_the_start_was_reported_counts(run: Run) -> None:
    system = run(
        *(shell(f"s{n}", "echo ready; sleep 1000", ready=ReadyPolicy(output="ready")) for n in range(5))
    )
    for n in range(5):
        system.wait_for(f"s{n}", Status.HEALTHY, timeout_s=PATIENCE_S)


def test_a_program_that_asks_decides(run: Run, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    asks = ReadyPolicy(command=CommandProbe(("test", "-e", str(gate))))
    system = run(shell("asked", "sleep 1000", ready=asks))
    assert eventually(lambda: "exited with code 1" in " ".join(system.status("asked").not_ready))
    gate.touch()
    system.wait_for("asked", Status.HEALTHY, timeout_s=PATIENCE_S)


def test_a_worker_starts_only_when_the_one_before_it_is_ready(run: Run, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    asks = ReadyPolicy(command=CommandProbe(("test", "-e", str(gate))))
    first = shell("first", "sleep 1000", ready=asks)
    system = run(first, shell("second", "sleep 1000", after=("first",)))
    assert eventually(lambda: system.status("first").pid is not None)
    assert (system.status("second").pid, system.status("second").waits_for) == (None, ("first",))
    gate.touch()
    system.wait_for("second", Status.HEALTHY, timeout_s=PATIENCE_S)


def test_a_program_that_is_not_ready_in_time_dies_with_the_latest_answer(run: Run) -> None:
    port = free_port()
    system = run(
        shell("deaf", "sleep 1000", ready=ReadyPolicy(tcp=TcpProbe(f"127.0.0.1:{port}")), health=NEVER)
    )
    assert eventually(lambda: bool(system.deaths("deaf")))
    death = system.deaths("deaf")[-1]
    assert death.cause is Cause.STARTUP_TIMEOUT
    words = f"not ready within 0.4 s: tcp 127.0.0.1:{port}: connection refused"
    assert eventually(lambda: words in system.explain("deaf"))


def test_only_so_many_are_starting_at_the_same_time(run: Run, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    asks = ReadyPolicy(command=CommandProbe(("test", "-e", str(gate))))
    specs = [shell(f"s{n}", "sleep 1000", ready=asks) for n in range(4)]
    system = run(*specs, max_concurrent_starts=2)
    assert eventually(lambda: sum(system.status(spec.id).pid is not None for spec in specs) == 2)
    gate.touch()
    for spec in specs:
        system.wait_for(spec.id, Status.HEALTHY, timeout_s=PATIENCE_S)
