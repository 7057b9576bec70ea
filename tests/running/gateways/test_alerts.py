"""Alerts of a real run: raised, acknowledged, sent, persisted over a restart, resolved."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.processes.waiting import eventually
from tests.running.conftest import IMPORT_PATH, REKINDLE, Run, Running

from rekindle.cli.config import ConfigError, parse

QUICK = "restart = { initial_delay_s = 0.05, min_delay_s = 0.0 }"


def alerts(running: Running) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = running.client.get("/alerts")["alerts"]
    return found


def rekindle(running: Running, *words: str) -> str:
    command = [*REKINDLE, *words, "--state", str(running.file.parent / ".rekindle")]
    environment = {**os.environ, "PYTHONPATH": IMPORT_PATH}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def test_a_crash_is_an_alert_that_is_sent_noted_and_resolved(run: Run, tmp_path: Path) -> None:
    said = tmp_path / "said"
    running = run(
        f"""
[alerts]
settle_s = 5.0
sink.file = {{ command = ["bash", "-c", "cat >>{said}; echo >>{said}"], on = ["opened", "resolved"] }}

[worker.web]
command = ["sleep", "1000"]
{QUICK}
"""
    )
    pid = running.wait_for("worker:web:0", status="healthy")["pid"]
    os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: len(alerts(running)) == 1)
    assert "crashed: killed by SIGKILL" in rekindle(running, "alerts", "--all")
    rekindle(running, "ack", "1", "--by", "night shift")
    (alert,) = alerts(running)
    assert (alert["severity"], alert["acknowledged_by"]) == ("warning", "night shift")
    assert eventually(lambda: alerts(running)[0]["resolved_at_wall_ms"] is not None)
    assert eventually(lambda: said.exists() and len(said.read_text().splitlines()) == 2)
    told = [json.loads(line)["happening"] for line in said.read_text().splitlines()]
    assert told == ["opened", "resolved"]
    assert "There are no open alerts." in rekindle(running, "alerts")
    assert [entry["action"] for entry in running.client.get("/audit")["entries"]] == ["acknowledge"]


def test_an_alert_outlives_its_supervisor(run: Run) -> None:
    file = '[worker.web]\ncommand = ["false"]\nrestart = { enabled = false }\n'
    first = run(file)
    assert eventually(lambda: bool(first.workers()) and len(alerts(first)) == 1)
    first.signal(signal.SIGKILL)
    first.end()
    second = run(file)
    assert eventually(lambda: bool(second.workers()) and len(alerts(second)) == 1)
    assert alerts(second)[0]["id"] == 1


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(text + '\n[worker.a]\ncommand = ["true"]\n', Path("/nowhere/rekindle.toml"))
    return str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[alerts]\nsettle_s = -1", "must be at least 0"),
        ("[alerts.sink.a]", "must have one of command, webhook, slack, ntfy, pagerduty, email"),
        ('[alerts.sink.a]\ncommand = ["a", "{unknown}"]', "{unknown} is not a placeholder; use one of {id}"),
        ('[alerts.sink.a]\nwebhook = "ftp://a"', "must be an http:// or https:// address"),
        ('[alerts.sink.a]\nwebhook = "https://a"\non = ["shut"]', "shut"),
        ("[alerts]\nloud = true", "loud"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_reason(text: str, reason: str) -> None:
    assert any(reason in line for line in problems(text)), problems(text)
