"""Real programs that are asked whether they are alive, and ended when they are not."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tests.processes.conftest import Run
from tests.processes.policies import SHORT, shell, worker
from tests.processes.waiting import eventually
from tests.web.dashboards import free_port

from rekindle.actors import Cause, ReadyPolicy, Status, WorkerSpec, command
from rekindle.actors.spec.policies.alive_policy import AlivePolicy
from rekindle.actors.spec.probe import CommandProbe, HttpProbe, TcpProbe

PATIENCE_S = 20.0
SERVER = """
import http.server, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        well = not os.path.exists(sys.argv[2])
        self.send_response(200 if well else int(sys.argv[3]))
        self.send_header("Location", "/elsewhere")
        self.end_headers()
        self.wfile.write(b"" if well else b"pool exhausted")
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def server(sick: Path, code: int = 503) -> WorkerSpec:
    """A server that answers with the code while the file exists."""
    port = free_port()
    argv = (sys.executable, "-c", SERVER, str(port), str(sick), str(code))
    http = HttpProbe(f"http://127.0.0.1:{port}/up", codes=(200,))
    alive = AlivePolicy(http=http, every_s=0.1, timeout_s=5.0, failures=3)
    return worker("server", command(*argv), ready=ReadyPolicy(http=http), alive=alive)


@pytest.mark.parametrize("code", [503, 302])
def test_a_server_that_answers_badly_is_restarted_and_the_answers_are_kept(
    run: Run, tmp_path: Path, code: int
) -> None:
    sick = tmp_path / "sick"
    system = run(server(sick, code))
    system.wait_for("server", Status.HEALTHY, timeout_s=PATIENCE_S)
    assert eventually(lambda: "answered 200 OK" in " ".join(system.status("server").probes))
    assert "Its probe: GET http://127.0.0.1" in system.explain("server")
    sick.touch()
    assert eventually(lambda: system.deaths("server"))
    sick.unlink()
    assert system.deaths("server")[-1].cause is Cause.PROBE_FAILED
    assert eventually(lambda: system.bundles("server"))
    bundle = system.bundles("server")[-1]
    assert f"failed 0 s ago: answered {code}" in bundle.probes[0]
    assert "it did not answer well: 3 probes failed in a row" in bundle.sentence
    system.wait_for("server", Status.HEALTHY, timeout_s=PATIENCE_S)


def test_a_program_that_stops_accepting_connections_is_restarted(run: Run, tmp_path: Path) -> None:
    port, gate = free_port(), tmp_path / "gate"
    os.mkfifo(gate)
    listen = f"s = socket.create_server(('127.0.0.1', {port}))"
    script = f"import socket, time; {listen}; open({str(gate)!r}).close(); s.close(); time.sleep(1000)"
    tcp = TcpProbe(f"127.0.0.1:{port}")
    alive = AlivePolicy(tcp=tcp, every_s=0.1, failures=2)
    system = run(
        worker("app", command(sys.executable, "-c", script), ready=ReadyPolicy(tcp=tcp), alive=alive)
    )
    system.wait_for("app", Status.HEALTHY, timeout_s=PATIENCE_S)
    gate.write_bytes(b"")
    assert eventually(lambda: system.deaths("app"))
    assert eventually(lambda: "2 probes failed in a row: connection to" in system.explain("app"))


def test_a_program_decides_whether_another_lives(run: Run, tmp_path: Path) -> None:
    well = tmp_path / "well"
    well.touch()
    alive = AlivePolicy(command=CommandProbe(("test", "-e", str(well))), every_s=0.1, failures=2)
    system = run(shell("app", "sleep 1000", alive=alive, ready=ReadyPolicy(after_s=0)))
    assert eventually(lambda: system.status("app").probes)
    assert system.deaths("app") == ()
    well.unlink()
    assert eventually(lambda: system.deaths("app"))
    assert system.deaths("app")[-1].cause is Cause.PROBE_FAILED


APPLICATION = """
import os, threading
def app(environ, start_response):
    if os.path.exists(environ["PATH_INFO"]):
        hangs_for_ever()
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
def hangs_for_ever():
    threading.Event().wait()
"""


def test_gunicorn_is_ready_when_it_says_so_and_restarted_when_it_hangs(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("gunicorn")
    (tmp_path / "application.py").write_text(APPLICATION)
    port, sick = free_port(), tmp_path / "sick"
    argv = ("-m", "gunicorn", "application:app", "--bind", f"127.0.0.1:{port}", "--timeout", "0")
    http = HttpProbe(f"http://127.0.0.1:{port}{sick}")
    spec = worker(
        "gunicorn",
        command(sys.executable, *argv, stacks=True),
        cwd=str(tmp_path),
        ready=ReadyPolicy(notify=True, http=http),
        alive=AlivePolicy(http=http, every_s=0.2, timeout_s=1.0, failures=2),
        stop=SHORT,
    )
    system = run(spec)
    system.wait_for("gunicorn", Status.HEALTHY, timeout_s=PATIENCE_S)
    assert "Gunicorn" in system.status("gunicorn").said
    sick.touch()
    assert eventually(lambda: system.deaths("gunicorn"))
    sick.unlink()
    assert eventually(lambda: any(bundle.last_words for bundle in system.bundles("gunicorn")))
    words = system.bundles("gunicorn")[-1].last_words
    assert "gunicorn" in words
    system.wait_for("gunicorn", Status.HEALTHY, timeout_s=PATIENCE_S)
