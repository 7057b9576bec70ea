"""The metrics of a real system, asked for over HTTP and read by the real parser."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import prometheus_client
import pytest
from tests.control.operator_double import OperatorDouble
from tests.metrics.promql_subset import Series, series
from tests.nats.conftest import identity
from tests.processes.conftest import Run
from tests.processes.waiting import eventually

from rekindle.actors import Status, System, WorkerSpec
from rekindle.actors.deaths.death import Cause
from rekindle.actors.facts.node_figures import NodeFigures
from rekindle.actors.gateways.control import ControlServer
from rekindle.actors.gateways.gateway_errors import MissingExtraError
from rekindle.actors.gateways.gateway_state import GatewayState
from rekindle.actors.gateways.metrics import Metrics
from rekindle.actors.gateways.metrics.families import _figures
from rekindle.actors.spec.program import command

W = "worker:tag:0"


def sleeper(id_: str = W) -> WorkerSpec:
    return WorkerSpec.from_preset(id_, command("sleep", "1000"))


NATS = GatewayState(name="nats", connected=True, detail="", since_wall_ms=0, delivered=3, waiting=2)


class SystemWithMetrics(OperatorDouble):
    """A system with metrics and a gateway."""

    def __init__(self, system: System, directory: Path) -> None:
        super().__init__(system)
        self._metrics = Metrics(self, identity(directory))

    def gateways(self) -> tuple[GatewayState, ...]:
        return (NATS,)

    def metrics(self) -> bytes | None:
        return self._metrics.text()


def curl(server: ControlServer, path: str) -> tuple[str, bytes]:
    """The head and the body of an answer."""
    command = ["curl", "-sS", "-i", "--max-time", "20", "--unix-socket", str(server.path)]
    done = subprocess.run([*command, f"http://rekindle{path}"], capture_output=True, check=True)
    head, _, body = done.stdout.partition(b"\r\n\r\n")
    return head.decode(), body


def scrape(server: ControlServer) -> Series:
    return series(curl(server, "/metrics")[1])


def value(found: Series, name: str, **labels: str) -> float:
    return found[name, frozenset(labels.items())]


def test_every_series_is_there_from_the_start(run: Run, tmp_path: Path) -> None:
    system = run(sleeper(W), sleeper("other"))
    system.wait_for(W, Status.HEALTHY, timeout_s=20)
    with ControlServer(SystemWithMetrics(system, tmp_path), tmp_path / "state") as server:
        head, body = curl(server, "/metrics")
        found = series(body)
    assert "content-type: text/plain; version=0.0.4; charset=utf-8" in head
    for id_, group in ((W, "tag"), ("other", "other")):
        who = {"worker": id_, "group": group}
        for cause in Cause:
            assert value(found, "rekindle_worker_deaths_total", **who, cause=cause.value) == 0
        assert value(found, "rekindle_worker_restarts_total", **who) == 0
        assert value(found, "rekindle_worker_next_attempt_seconds", **who) == 0
        for limit, left in (("window", 5.0), ("lifetime", 20.0), ("consecutive", float("inf"))):
            assert value(found, "rekindle_worker_budget_left", **who, limit=limit) == left
    assert value(found, "rekindle_worker_status", worker=W, group="tag", status="healthy") == 1
    assert value(found, "rekindle_worker_status", worker=W, group="tag", status="failed") == 0
    assert value(found, "rekindle_events_total", type="worker_died") == 0
    assert value(found, "rekindle_workers", status="crashed") == 0
    assert value(found, "rekindle_store_degraded") == 0
    assert value(found, "rekindle_gateway_event_lag", gateway="nats") == 2
    assert value(found, "rekindle_supervisor_process_resident_memory_bytes") > 0


def test_a_death_is_counted_by_its_cause(run: Run, tmp_path: Path) -> None:
    system = run(sleeper(W))
    pid = system.wait_for(W, Status.HEALTHY, timeout_s=20).pid
    assert pid is not None
    with ControlServer(SystemWithMetrics(system, tmp_path), tmp_path / "state") as server:
        os.kill(pid, signal.SIGKILL)
        who = {"worker": W, "group": "tag"}
        died = ("rekindle_worker_deaths_total", frozenset({**who, "cause": "signalled"}.items()))
        assert eventually(lambda: scrape(server)[died] == 1)
        found = scrape(server)
    assert value(found, "rekindle_worker_restarts_total", **who) == 1
    assert value(found, "rekindle_worker_budget_left", **who, limit="lifetime") == 19
    assert value(found, "rekindle_events_total", type="worker_died") == 1
    count = value(found, "rekindle_store_commit_seconds_count")
    assert count >= 1
    assert value(found, "rekindle_store_commit_seconds_bucket", le="+Inf") == count
    assert 0 < value(found, "rekindle_store_commit_seconds_sum") < 60


def test_a_worker_that_was_removed_no_longer_has_a_series(run: Run, tmp_path: Path) -> None:
    system = run(sleeper(W), sleeper("other"))
    watched = SystemWithMetrics(system, tmp_path)
    system.remove("other")
    assert b'worker="other"' not in (watched.metrics() or b"")
    assert b'worker="worker:tag:0"' in (watched.metrics() or b"")


def test_a_host_s_own_registry_is_left_alone(run: Run, tmp_path: Path) -> None:
    SystemWithMetrics(run(sleeper(W)), tmp_path)
    assert b"rekindle" not in prometheus_client.generate_latest()


def test_metrics_that_are_turned_off_are_not_there_and_say_how_to_turn_them_on(
    run: Run, tmp_path: Path
) -> None:
    with ControlServer(OperatorDouble(run(sleeper(W))), tmp_path / "state") as server:
        head, body = curl(server, "/metrics")
    assert " 404 " in head.splitlines()[0]
    assert b"[metrics]" in body


def test_a_missing_extra_is_named_with_what_installs_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'rekindle-supervisor\[metrics\]'"):
        SystemWithMetrics(run(sleeper(W)), tmp_path)


def test_a_node_of_a_cluster_shows_its_lease_its_history_and_the_suspicions_of_the_leader() -> None:
    figures = NodeFigures()
    figures.renewals.took(0.004)
    figures.suspicions = {"k1": 1.0, "k2": 2e-7}
    shown = {
        (each.name, *each.labels.values()): each.value
        for family in _figures(figures)
        for each in family.samples
    }
    assert shown["rekindle_lease_renew_seconds_count",] == 1
    assert shown["rekindle_lease_renew_seconds_bucket", "0.005"] == 1
    assert shown["rekindle_ship_lag_seconds",] == 0
    assert shown["rekindle_node_suspicion_p", "k2"] == 2e-7
    figures.unshipped_since_ms = 1_000
    assert figures.ship_lag_s(now_wall_ms=3_500) == 2.5
