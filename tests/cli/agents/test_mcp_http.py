"""`rekindle mcp --http`, spoken to by the official client over real HTTP, beside a real supervisor."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import pytest
from mcp.client.client import Client as McpClient
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Implementation
from tests.cli.agents.test_mcp import READS, REASON, read
from tests.cli.conftest import COMMAND, Client, client_of
from tests.processes.waiting import eventually
from tests.running.conftest import IMPORT_PATH, Running

FILE = """
[http]
listen = "127.0.0.1:0"

[worker.web]
command = ["sleep", "1000"]
count = 2
"""
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"},
    },
}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A supervisor with two sleepers."""
    file = tmp_path_factory.mktemp("agents") / "workers.toml"
    file.write_text(FILE)
    running = Running(file)
    try:
        running.wait_for("worker:web:1", status="healthy")
        yield running
    finally:
        running.stop()


@contextmanager
def served(running: Running, *options: str, command: list[str] = COMMAND) -> Iterator[str]:
    """`rekindle mcp --http` on a free port; its URL."""
    process = subprocess.Popen(
        [*command, "mcp", "--http", "127.0.0.1:0", "--state", str(state_of(running)), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # a line for each refused session would fill a pipe
        text=True,
        env={**os.environ, "PYTHONPATH": IMPORT_PATH, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("Serving agents at http://127.0.0.1:"), (line, process.poll())
        yield line.split()[3]
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate(timeout=30)


def state_of(running: Running) -> Path:
    return running.file.parent / ".rekindle"


def token(running: Running, role: str) -> str:
    return (state_of(running) / f"http-{role}.token").read_text().strip()


def talk(url: str, shown: str, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """The names of the tools, then the answer to each call."""

    async def converse() -> list[Any]:
        headers = {"Authorization": f"Bearer {shown}"}
        name = Implementation(name="pytest-agent", version="1")
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            McpClient(streamable_http_client(url, http_client=http), client_info=name) as client,
        ):
            tools = await client.list_tools()
            answers: list[Any] = [{tool.name for tool in tools.tools}]
            for tool, arguments in calls:
                answers.append(read(await client.call_tool(tool, arguments)))
        return answers

    return anyio.run(converse)


def raw(url: str, method: str = "POST", **headers: str) -> tuple[int, Any]:
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    try:
        given = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        connection.request(method, parts.path, json.dumps(INITIALIZE), given)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def test_a_viewer_reads_and_has_no_tool_that_changes_something(fleet: Running) -> None:
    with served(fleet, "--operator") as url:
        names, status, refused = talk(
            url,
            token(fleet, "viewer"),
            ("status", {}),
            ("stop", {"name": "web", "reason": REASON}),
        )
    assert names == READS
    assert len(status["workers"]) == 2
    assert "stop" in refused
    assert fleet.worker("worker:web:0")["status"] == "healthy"


def test_an_order_of_the_operator_needs_a_reason_and_is_audited_with_the_name_of_the_client(
    fleet: Running,
) -> None:
    with served(fleet, "--operator") as url:
        names, refused, done = talk(
            url,
            token(fleet, "operator"),
            ("restart", {"name": "web", "reason": "because"}),
            ("restart", {"name": "worker:web:0", "reason": REASON}),
        )
    assert names > READS
    assert "give a reason" in refused
    assert [each["result"] for each in done["results"]] == ["done"]
    entries = [each for each in fleet.client.get("/audit")["entries"] if each["action"] == "restart"]
    assert entries[0]["claimed_user"] == "pytest-agent (mcp, operator token)"
    assert json.loads(entries[0]["detail"])["reason"] == REASON


def test_a_proposal_over_http_waits_for_a_person(fleet: Running) -> None:
    rekindle: Client = client_of(fleet)
    before = fleet.worker("worker:web:1")["generation"]
    with served(fleet, "--propose") as url:
        _, proposed = talk(
            url, token(fleet, "operator"), ("restart", {"name": "worker:web:1", "reason": REASON})
        )
    number = proposed["results"][0]["proposal"]
    assert fleet.worker("worker:web:1")["generation"] == before
    assert rekindle("mcp", "confirm", str(number)).code == 0
    fleet.wait_for("worker:web:1", generation=before + 1)


def test_without_an_option_the_operator_only_reads(fleet: Running) -> None:
    with served(fleet) as url:
        (names,) = talk(url, token(fleet, "operator"))
    assert names == READS


def test_requests_that_browsers_of_other_sites_could_send_are_refused(fleet: Running) -> None:
    with served(fleet) as url:
        viewer = {"Authorization": f"Bearer {token(fleet, 'viewer')}"}
        assert raw(url, **viewer)[0] == 200
        assert raw(url)[0] == 401
        assert raw(url, Authorization="Bearer " + "x" * 43)[0] == 401
        assert raw(url, **viewer, Host="evil.example")[1]["error"] == "wrong_host"
        assert raw(url, **viewer, Origin="https://evil.example")[1]["error"] == "cross_site"
        assert raw(url.replace("/mcp", "/api/v1/workers"), **viewer)[0] == 404


def test_sessions_of_one_role_cannot_be_used_with_the_token_of_the_other(fleet: Running) -> None:
    """A session of the operator's tools must not open for a viewer who learned its id."""
    with served(fleet, "--operator") as url:
        parts = urlsplit(url)
        connection = HTTPConnection(parts.hostname or "", parts.port, timeout=30)
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {token(fleet, 'operator')}",
        }
        connection.request("POST", parts.path, json.dumps(INITIALIZE), headers)
        answer = connection.getresponse()
        answer.read()
        session = answer.getheader("mcp-session-id")
        assert session is not None
        headers |= {"Authorization": f"Bearer {token(fleet, 'viewer')}", "Mcp-Session-Id": session}
        body = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        connection.request("POST", parts.path, json.dumps(body), headers)
        assert connection.getresponse().status == 404
        connection.close()


def limited(**limits: float) -> list[str]:
    """The command with other limits of sessions."""
    changes = "; ".join(f"mcp_http.{name} = {value}" for name, value in limits.items())
    start = f"from rekindle.cli.agents import mcp_http; {changes}; from rekindle.cli.main import main; main()"
    return [sys.executable, "-c", start]


def test_clients_that_never_end_their_sessions_lock_others_out_for_the_idle_time_only(
    fleet: Running,
) -> None:
    with served(fleet, command=limited(MOST_SESSIONS=2, IDLE_S=2.0, REST_S=900.0)) as url:
        viewer = {"Authorization": f"Bearer {token(fleet, 'viewer')}"}
        assert eventually(lambda: raw(url, **viewer)[0] == 503)
        assert eventually(lambda: raw(url, **viewer)[0] == 200)


def test_a_flood_of_sessions_is_refused_with_a_reason_and_locks_no_operator_out(fleet: Running) -> None:
    with served(fleet, "--operator", command=limited(MOST_SESSIONS=5, REST_S=900.0)) as url:
        viewer = {"Authorization": f"Bearer {token(fleet, 'viewer')}"}
        answers = [raw(url, **viewer) for _ in range(50)]
        assert [status for status, _ in answers] == [200] * 5 + [503] * 45
        reason = answers[-1][1]["error"]["message"]
        assert reason.startswith("5 sessions are open, which is the limit")
        assert "DELETE" in reason
        _, status = talk(url, token(fleet, "operator"), ("status", {}))
        assert len(status["workers"]) == 2


def test_a_client_that_works_keeps_its_session_in_a_flood_and_the_next_one_gets_one(fleet: Running) -> None:
    """A session that nothing uses makes room; before, a flood kept new clients out for five minutes."""

    async def converse(url: str, shown: str) -> tuple[int, int]:
        headers = {"Authorization": f"Bearer {shown}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            McpClient(streamable_http_client(url, http_client=http)) as client,
        ):
            flooded = 0
            for _ in range(30):
                flooded += (await http.post(url, json=INITIALIZE, headers=ACCEPT)).status_code == 200
                read(await client.call_tool("status", {}))
        return flooded, len(read(await _status(url, shown))["workers"])

    with served(fleet, command=limited(MOST_SESSIONS=4, REST_S=0.0)) as url:
        assert anyio.run(converse, url, token(fleet, "viewer")) == (30, 2)


ACCEPT = {"Accept": "application/json, text/event-stream"}


async def _status(url: str, shown: str) -> Any:
    headers = {"Authorization": f"Bearer {shown}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        McpClient(streamable_http_client(url, http_client=http)) as client,
    ):
        return await client.call_tool("status", {})


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--http", "0.0.0.0:0"], "is reachable from other machines"),
        (["--http", "nonsense"], "must be ADDRESS:PORT"),
    ],
)
def test_an_address_that_would_not_be_safe_is_refused(fleet: Running, options: list[str], why: str) -> None:
    done = client_of(fleet)("mcp", *options)
    assert done.code != 0
    assert why in done.err


def test_without_a_supervisor_it_does_not_serve(no_supervisor: Client) -> None:
    assert no_supervisor("mcp", "--http", "127.0.0.1:0").code == 3
