"""What a program wrote last says why it died, wherever a person looks."""

from __future__ import annotations

import sys

import pytest
from tests.cli.conftest import client_of
from tests.running.conftest import Run, Running

FATAL = "FATAL: cannot bind to port 80: permission denied"
RESTART = "restart = { initial_delay_s = 1000, max_delay_s = 1000 }"
DEEP = """\
def odd(depth):
    even(depth - 1)
def even(depth):
    if depth == 0:
        raise ValueError("deep trouble")
    odd(depth - 1)
even(60)
"""


@pytest.fixture
def crashed(run: Run) -> Running:
    running = run(
        f"""
[worker.sh]
command = ["sh", "-c", "echo starting; echo '{FATAL}' >&2; exit 98"]
{RESTART}
[worker.deep]
command = ["{sys.executable}", "-c", '''{DEEP}''']
{RESTART}
[worker.asked]
command = ["{sys.executable}", "-c", "raise SystemExit('please install nosuchthing')"]
{RESTART}
[worker.spent]
command = ["sh", "-c", "echo no licence >&2; exit 3"]
restart = {{ restart_on = "always", give_up_exit_codes = [3] }}
"""
    )
    for name in ("sh", "deep", "asked"):
        running.wait_for(f"worker:{name}:0", shown="crashed")
    running.wait_for("worker:spent:0", shown="failed")
    return running


def test_every_view_shows_the_last_error_and_the_command_that_tells_more(crashed: Running) -> None:
    rekindle = client_of(crashed)
    explained = rekindle("explain", "sh").lines
    assert f"  {FATAL}" in explained
    assert "More: rekindle history worker:sh:0 --bundle last" in explained
    assert "  ValueError: deep trouble" in rekindle("explain", "deep").lines
    assert "  please install nosuchthing" in rekindle("explain", "asked").lines
    assert rekindle("explain", "sh", "--json").document["last_error"] == FATAL
    table = rekindle("status").out
    for said in (FATAL, "ValueError: deep trouble", "please install nosuchthing", "(no licence)"):
        assert said in table
    alerts = rekindle("alerts").out
    assert f"crashed: exited with code 98 ({FATAL})" in alerts
    assert f"exited with code 98: {FATAL}; restart in" in rekindle("events", "--limit", "100").out
    assert f"its last words: {FATAL}" in rekindle("history", "sh", "--bundle", "last").out


def test_a_worker_that_is_killed_is_not_explained_by_what_it_last_logged(run: Run) -> None:
    running = run(f'[worker.web]\ncommand = ["sh", "-c", "echo GET / 200 >&2; kill -9 $$"]\n{RESTART}\n')
    running.wait_for("worker:web:0", shown="crashed")
    assert "GET /" not in client_of(running)("explain", "web").out
