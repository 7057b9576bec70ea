"""A collector that is away, slow or hostile: supervision goes on, and lost spans are counted."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from pathlib import Path
from typing import Never

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from tests.otel.collector import Collector, collecting
from tests.otel.conftest import Export
from tests.otel.test_otel import WORKER, await_another, healthy
from tests.processes.conftest import Run
from tests.processes.policies import sleeper
from tests.processes.waiting import eventually

from rekindle.actors import Status, System
from rekindle.actors.gateways.otel.span_exporter import SpanExporter


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def lost_gateways(system: System) -> list[str]:
    lost = [each for each in system.event_log().events if each.type == "gateway_lost"]
    return [json.loads(each.payload)["gateway"] for each in lost]


def test_a_collector_that_is_away_delays_no_restart_and_its_spans_are_counted(
    run: Run, export: Export, capfd: pytest.CaptureFixture[str]
) -> None:
    system = run(sleeper(WORKER))
    gateway = export(system, f"http://127.0.0.1:{free_port()}/v1/traces", timeout_s=0.5)
    first = healthy(system)
    os.kill(first, signal.SIGKILL)
    await_another(system, first)
    assert eventually(lambda: gateway.state().dropped >= 1)
    state = gateway.state()
    assert (state.connected, state.delivered) == (False, 0)
    assert state.detail
    assert eventually(lambda: lost_gateways(system) == ["otel"])
    assert capfd.readouterr().err == "", "the exporter's own log reached the host's standard error"


def test_a_collector_that_is_back_takes_what_ends_then(
    run: Run, export: Export, collector: Collector
) -> None:
    system = run(sleeper(WORKER))
    gateway = export(system, collector.url, timeout_s=0.5)
    collector.status = 400
    os.kill(healthy(system), signal.SIGKILL)
    assert eventually(lambda: not gateway.state().connected)
    collector.status = 200
    system.wait_until(WORKER, lambda w: w.generation == 2 and w.status is Status.HEALTHY, timeout_s=20)
    system.stop_worker(WORKER)
    collector.span("life of worker:tag", rekindle__worker__generation=2)
    assert eventually(lambda: gateway.state().connected)
    assert eventually(lambda: any(e.type == "gateway_restored" for e in system.event_log().events))


@pytest.mark.parametrize("part", [(OTLPSpanExporter, "export"), (SpanExporter, "_translated")])
def test_an_exception_while_spans_are_sent_loses_these_spans_only(
    run: Run,
    export: Export,
    collector: Collector,
    monkeypatch: pytest.MonkeyPatch,
    part: tuple[type[object], str],
) -> None:
    def fail(*_: object) -> Never:
        raise RuntimeError("x-api-key: abc123")

    system = run(sleeper(WORKER))
    with monkeypatch.context() as patched:
        patched.setattr(*part, fail)
        gateway = export(system, collector.url)
        os.kill(healthy(system), signal.SIGKILL)
        assert eventually(lambda: gateway.state().dropped == 1)
        assert "RuntimeError" in gateway.state().detail
        assert "abc123" not in gateway.state().detail
    system.wait_until(WORKER, lambda w: w.generation == 2 and w.status is Status.HEALTHY, timeout_s=20)
    system.stop_worker(WORKER)
    collector.span("life of worker:tag", rekindle__worker__generation=2)
    assert eventually(lambda: gateway.state().connected)


def test_a_redirect_is_not_followed_with_the_headers(
    run: Run, export: Export, collector: Collector, tmp_path: Path
) -> None:
    headers = tmp_path / "otel.headers"
    headers.touch(0o600)
    headers.write_text("x-api-key: abc123\n")
    with collecting() as other:
        collector.status, collector.location = 307, other.url
        system = run(sleeper(WORKER))
        gateway = export(system, collector.url, headers_file=headers, timeout_s=0.5)
        os.kill(healthy(system), signal.SIGKILL)
        assert eventually(lambda: gateway.state().delivered + gateway.state().dropped == 1)
        assert collector.was_asked.is_set()
        assert not other.was_asked.is_set()


def test_a_collector_that_does_not_answer_delays_neither_a_restart_nor_the_stop(
    run: Run, export: Export, collector: Collector
) -> None:
    system = run(sleeper(WORKER))
    gateway = export(system, collector.url, timeout_s=60.0, most_waiting=5)
    collector.may_answer.clear()
    for _ in range(6):
        pid = healthy(system)
        os.kill(pid, signal.SIGKILL)
        await_another(system, pid)
    assert collector.was_asked.is_set()
    assert eventually(lambda: gateway.state().dropped > 0)
    assert gateway.state().waiting <= 5
    began = time.monotonic()
    gateway.stop()
    assert time.monotonic() - began < 30, "it waited for the collector"
