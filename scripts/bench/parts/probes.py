"""What the probes of many workers cost the supervisor: workers that sleep, one server that answers for all.

The supervisor is a process of its own, so that its processor time is not that of the server.
"""

from __future__ import annotations

import http.server
import subprocess
import sys
import threading
import time
from dataclasses import dataclass

from rekindle.actors import AlivePolicy, System, WorkerSpec, command
from rekindle.actors.spec.probe import HttpProbe
from rekindle.persistence import MemoryStore

from ..footprint import idle

EVERY_S = 10.0
WORKERS = 1000


@dataclass(frozen=True, slots=True)
class ProbeCost:
    """The processor time of a supervisor, in percent of one core."""

    workers: int
    every_s: float
    without_percent: float
    """The same workers, not probed."""
    with_percent: float
    answered: int
    """How many probes the server answered meanwhile."""


class _Handler(http.server.BaseHTTPRequestHandler):
    answered = 0

    def do_GET(self) -> None:  # the name that http.server calls
        _Handler.answered += 1
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""


def measure_probes(seconds: float = 2 * EVERY_S, workers: int = WORKERS) -> ProbeCost:
    """Measure a supervisor with probed workers, and one with workers that are not probed."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/"
    without, _ = _cpu_percent("", workers, seconds)
    cost, answered = _cpu_percent(url, workers, seconds)
    server.shutdown()
    server.server_close()
    return ProbeCost(workers, EVERY_S, without, cost, answered)


def line(cost: ProbeCost) -> str:
    """The figures in words."""
    return (
        f"{cost.workers} http probes every {cost.every_s:g} s: {cost.with_percent:.1f} % of a core "
        f"({cost.without_percent:.1f} % without probes; {cost.answered} answers)"
    )


def _cpu_percent(url: str, workers: int, seconds: float) -> tuple[float, int]:
    argv = [sys.executable, "-m", __name__, url, str(workers)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as supervisor:
        assert supervisor.stdout is not None
        supervisor.stdout.readline()
        time.sleep(EVERY_S)  # until every worker was asked once
        before = _Handler.answered
        cpu = idle(supervisor.pid, seconds).cpu_percent
        answered = _Handler.answered - before
        supervisor.communicate()
    return cpu, answered


def _supervise(url: str, workers: int) -> None:
    alive = AlivePolicy(http=HttpProbe(url), every_s=EVERY_S) if url else None
    specs = [WorkerSpec(f"w{n}", command("sleep", "inf"), alive=alive) for n in range(workers)]
    with System(specs, store=MemoryStore()) as system:
        while any(worker.shown != "healthy" for worker in system.report().workers):
            time.sleep(0.2)
        print("ready", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    _supervise(sys.argv[1], int(sys.argv[2]))
