"""A web server under load while it is released, recycled and killed, and its supervisor upgraded.

`./scripts/chaos/gapless 20` does each of these twenty times; here it is done once.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import pytest
from tests.processes.waiting import PATIENCE_S, eventually
from tests.running.conftest import Run, Running
from tests.running.upgrade.upgrading import upgraded

ROUNDS = int(os.environ.get("GAPLESS_ROUNDS", "1"))
CLIENTS = 4
ROOT = Path(__file__).parents[3]
GUNICORN = [sys.executable, "-m", "gunicorn", "tests.processes.web_application:wsgi", "--no-control-socket"]
SERVERS = {
    "gunicorn": f"""
command = {json.dumps(GUNICORN)}
ready = {{ output = "Booting worker" }}
""",
    # uvicorn closes connections that it has accepted and not read from when it stops: it is drained first.
    "uvicorn": """
python = "tests.processes.web_application:drained"
stop = { drain = { within_s = 5 } }
""",
}
FILE = """
[socket.web]
listen = "127.0.0.1:{port}"

[worker.web]
{server}
cwd = "{root}"
sockets = ["web"]
rollout = {{ surge = 1, settle_s = 0.2 }}
restart = {{ max_in_window = "none", max_lifetime = "none", initial_delay_s = 0.1, max_delay_s = 0.2 }}
{more}
"""


class Load:
    """Clients that ask without a pause, each request over a connection of its own."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._ask_on) for _ in range(CLIENTS)]
        self.answers: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()

    @contextmanager
    def going_on(self) -> Iterator[Load]:
        """Ask for the duration of a block, from the first answer on."""
        for thread in self._threads:
            thread.start()
        try:
            assert eventually(lambda: bool(self.answers)), self.failures
            yield self
        finally:
            self._over.set()
            for thread in self._threads:
                thread.join(PATIENCE_S)

    def _ask_on(self) -> None:
        while not self._over.is_set():
            connection = HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE_S)
            try:
                connection.request("GET", "/?0.005")
                self.answers[connection.getresponse().read().decode()] += 1
            except (OSError, HTTPException) as error:
                self.failures[type(error).__name__] += 1
            finally:
                connection.close()


def text_of(server: str, port: int, more: str = "") -> str:
    return FILE.format(port=port, server=SERVERS[server], root=ROOT, more=more)


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as made:
        return int(made.getsockname()[1])


def served(run: Run, text: str) -> Running:
    running = run(text)
    running.wait_for("worker:web:0", status="healthy")
    return running


@pytest.mark.parametrize("server", list(SERVERS))
def test_no_request_fails_while_a_web_server_is_released(run: Run, port: int, server: str) -> None:
    running = served(run, text_of(server, port))
    with Load(port).going_on() as load:
        for _ in range(ROUNDS):
            before = running.worker("worker:web:0")["generation"]
            running.order("groups", "web", "restart", surge=1)
            assert eventually(
                lambda: not running.client.get("/groups/web/rolling")["under_way"], 2 * PATIENCE_S
            ), running.text()
            assert running.worker("worker:web:0")["generation"] > before, running.text()
    report(f"{server}: {ROUNDS} releases", load)
    assert load.failures == {}


@pytest.mark.parametrize("server", list(SERVERS))
def test_no_request_fails_while_a_web_server_is_recycled(run: Run, port: int, server: str) -> None:
    running = served(run, text_of(server, port, "recycle = { after_s = 1, jitter = 0 }"))
    with Load(port).going_on() as load:
        enough = ROUNDS + 1
        assert eventually(
            lambda: running.worker("worker:web:0").get("generation", 0) >= enough, ROUNDS * PATIENCE_S
        ), running.text()
    report(f"{server}: {ROUNDS} recyclings", load)
    assert load.failures == {}


@pytest.mark.parametrize("server", list(SERVERS))
def test_a_killed_web_server_loses_only_the_requests_that_it_held(run: Run, port: int, server: str) -> None:
    running = served(run, text_of(server, port))
    with Load(port).going_on() as load:
        for _ in range(ROUNDS):
            kill(running)
            answered = load.answers.total()  # gunicorn is ready before its worker can answer
            assert eventually(lambda: load.answers.total() > answered), running.text()  # noqa: B023
    report(f"{server}: {ROUNDS} kills", load)
    assert load.failures["ConnectionRefusedError"] == 0
    assert load.failures.total() <= ROUNDS * CLIENTS


@pytest.mark.parametrize("server", list(SERVERS))
def test_no_request_fails_while_the_supervisor_is_upgraded(run: Run, port: int, server: str) -> None:
    running = served(run, text_of(server, port))
    pid = running.worker("worker:web:0")["pid"]
    with Load(port).going_on() as load:
        for _ in range(ROUNDS):
            upgraded(running)
        assert running.wait_for("worker:web:0", status="healthy")["pid"] == pid, running.text()
        # The socket is still the supervisor's: the next process gets it.
        running.order("groups", "web", "restart", surge=1)
        assert eventually(lambda: not running.client.get("/groups/web/rolling")["under_way"], 2 * PATIENCE_S)
    report(f"{server}: {ROUNDS} upgrades of the supervisor", load)
    assert load.failures == {}
    assert running.worker("worker:web:0")["pid"] != pid


def kill(running: Running) -> None:
    """Kill the server, and wait until the next one is ready."""
    killed = running.wait_for("worker:web:0", status="healthy")["pid"]
    os.kill(killed, signal.SIGKILL)
    assert eventually(lambda: running.worker("worker:web:0").get("pid") not in (None, killed))
    running.wait_for("worker:web:0", status="healthy")


def report(what: str, load: Load) -> None:
    sys.stdout.write(
        f"{what}: {load.answers.total()} requests answered by {len(load.answers)} processes, "
        f"failed: {dict(load.failures) or 'none'}\n"
    )
