"""`rekindle run` with NATS and metrics enabled in the file."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.request

from tests.metrics.promql_subset import series
from tests.nats.subscriber import Subscriber
from tests.processes.waiting import eventually
from tests.running.conftest import REKINDLE, Run
from tests.services import NatsService, NatsServices, nats_service, nats_services

__all__ = ["nats_service", "nats_services"]

WORKER = '[worker.tag]\ncommand = ["sleep", "1000"]\nrestart = { initial_delay_s = 0, min_delay_s = 0 }\n'
W = "worker:tag:0"


def with_nats(service: NatsService) -> str:
    return f'{WORKER}[nats]\nservers = ["{service.url}"]\njetstream = true\nstream = "REKINDLE"\n'


def test_a_stream_holds_what_happened_in_two_runs_of_a_file(nats_service: NatsService, run: Run) -> None:
    """EV-15, F31: the first run loses the server for a while and is killed; the second is stopped."""
    first = run(with_nats(nats_service))
    pid = first.wait_for(W, shown="healthy")["pid"]
    assert eventually(lambda: first.client.get("/info")["gateways"][0]["connected"])
    nats_service.kill()
    os.kill(pid, signal.SIGKILL)
    first.wait_for(W, shown="healthy", restart_count=1)
    assert eventually(lambda: not first.client.get("/info")["gateways"][0]["connected"])
    shown = subprocess.run(
        [*REKINDLE, "status", "--state", str(first.file.parent / ".rekindle")],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert "Events are not delivered to nats" in shown.stdout
    assert eventually(lambda: "nats: events are not delivered" in first.text())
    first.kill()
    nats_service.start()
    second = run(with_nats(nats_service))
    second.wait_for(W, shown="healthy")
    assert second.stop() == 0
    with Subscriber(nats_service.url) as subscriber:
        stored = subscriber.stored("REKINDLE")
    numbers = [each.body["id"] for each in stored]
    assert numbers == list(range(1, numbers[-1] + 1))
    types = [each.body["type"] for each in stored]
    causes = [each.body["cause"] for each in stored if each.body["type"] == "worker_died"]
    assert causes == ["signalled", "supervisor_lost"]
    # That its alert is over may follow.
    assert [each for each in types if each.startswith("worker_")][-1] == "worker_stopped"
    assert first.text().count("nats: events are not delivered") == 1


def test_a_missing_secret_is_reported_and_nothing_is_started(nats_services: NatsServices, run: Run) -> None:
    running = run(WORKER + '[nats]\nlogin.token_file = "nothing"\n')
    assert running.end() == 2
    assert "nothing: No such file" in running.text()


def test_metrics_are_served_on_both_sockets_to_authorised_clients(run: Run) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    running = run(f'{WORKER}[metrics]\nenabled = true\n[http]\nlisten = "127.0.0.1:{port}"\n')
    pid = running.wait_for(W, shown="healthy")["pid"]
    os.kill(pid, signal.SIGKILL)
    running.wait_for(W, shown="healthy", restart_count=1)
    state = running.file.parent / ".rekindle"
    token = (state / "http-viewer.token").read_text().strip()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/metrics", headers={"authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        found = series(answer.read())
    labels = frozenset({"worker": W, "group": "tag", "cause": "signalled"}.items())
    assert found["rekindle_worker_deaths_total", labels] == 1
    asked = ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}"]
    refused = subprocess.run([*asked, f"http://127.0.0.1:{port}/metrics"], capture_output=True, check=True)
    assert refused.stdout == b"401"
    socketed = ["curl", "-sS", "--unix-socket", str(state / "control.sock"), "http://x/metrics"]
    assert series(subprocess.run(socketed, capture_output=True, check=True).stdout).keys() == found.keys()
