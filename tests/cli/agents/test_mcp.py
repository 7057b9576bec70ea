"""`rekindle mcp`, spoken to by the official client over real pipes, beside a real supervisor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.client import Client as McpClient
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import CallToolResult, Implementation, TextContent
from tests.cli.conftest import COMMAND, Client, client_of
from tests.running.conftest import IMPORT_PATH, Run, Running

from rekindle.cli.agents.order_tools import ReasonMissingError, checked
from rekindle.cli.agents.proposals import MOST_OPEN, Proposals, ProposedOrder

READS = {
    "status", "why", "bundle", "timeline", "similar_crashes", "output", "alerts", "toxic_jobs",
    "simulate_policy",
}  # fmt: skip
REASON = "the disk has space again"
FILE = """
[worker.web]
command = ["sleep", "1000"]
count = 2

[worker.bad]
command = ["sh", "-c", "echo 'password=hunter2 is wrong' >&2; exit 3"]
restart = { max_in_window = 1, initial_delay_s = 0, min_delay_s = 0 }
"""

Talk = Callable[..., list[Any]]


def talk(state: Path | None, options: tuple[str, ...], *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """The names of the tools, then the answer to each call."""

    async def converse() -> list[Any]:
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "rekindle.cli", "mcp", *(() if state is None else ("--state", str(state))), *options],
            env={**os.environ, "PYTHONPATH": IMPORT_PATH},
        )
        name = Implementation(name="pytest-agent", version="1")
        async with McpClient(stdio_client(server), client_info=name) as client:
            tools = await client.list_tools()
            answers: list[Any] = [{tool.name for tool in tools.tools}]
            for tool, arguments in calls:
                answers.append(read(await client.call_tool(tool, arguments)))
        return answers

    return anyio.run(converse)


def read(result: CallToolResult) -> Any:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text if result.is_error else json.loads(content.text)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A supervisor with two sleepers and a worker that was given up; tests must not change it."""
    file = tmp_path_factory.mktemp("agents") / "workers.toml"
    file.write_text(FILE)
    running = Running(file)
    try:
        running.wait_for("worker:bad:0", shown="failed")
        running.wait_for("worker:web:1", status="healthy")
        yield client_of(running)
    finally:
        running.stop()


def test_without_an_option_the_tools_only_read(fleet: Client) -> None:
    (names,) = talk(fleet.state, ())
    assert names == READS


def test_the_tools_answer_with_evidence_and_mask_secrets(fleet: Client) -> None:
    _, status, why, bundle, timeline, similar = talk(
        fleet.state,
        (),
        ("status", {"name": "bad"}),
        ("why", {"worker": "bad"}),
        ("bundle", {"worker": "bad"}),
        ("timeline", {"worker": "bad"}),
        ("similar_crashes", {"worker": "bad"}),
    )
    assert [each["shown"] for each in status["workers"]] == ["failed"]
    assert "was given up" in why["text"]
    assert bundle["exit_code"] == 3
    assert timeline["entries"]
    assert similar["groups"][0]["times"] == 2
    everything = json.dumps([status, why, bundle, timeline, similar])
    assert "is wrong" in everything
    assert "hunter2" not in everything


def test_a_policy_is_simulated_and_a_mistake_is_told_in_a_sentence(fleet: Client) -> None:
    _, simulated, unknown, invalid = talk(
        fleet.state,
        (),
        ("simulate_policy", {"preset": "patient", "dies_after_s": 30}),
        ("why", {"worker": "nix"}),
        ("simulate_policy", {"changes": ["max_in_windw=3"]}),
    )
    assert simulated["forecasts"]
    assert "no worker is called 'nix'" in unknown
    assert "max_in_windw" in invalid


def test_the_tools_read_from_a_supervisor_elsewhere(run: Run, tmp_path: Path) -> None:
    running = run('[http]\nlisten = "127.0.0.1:0"\n[worker.web]\ncommand = ["sleep", "1000"]\n')
    running.wait_for("worker:web:0", status="healthy")
    url, state = running.client.get("/info")["dashboard"], client_of(running).state
    named = ("--url", url, "--token-file", str(state / "http-viewer.token"), "--operator")
    names, status, refused = talk(None, named, ("status", {}), ("stop", {"name": "web", "reason": REASON}))
    assert names > READS
    assert [each["id"] for each in status["workers"]] == ["worker:web:0"]
    assert [each["result"] for each in refused["results"]] == ["forbidden"]


def test_an_order_needs_a_reason_and_is_audited_with_the_name_of_the_client(run: Run) -> None:
    running = run('[worker.web]\ncommand = ["sleep", "1000"]\ncount = 2\n')
    running.wait_for("worker:web:1", status="healthy")
    rekindle = client_of(running)
    names, refused, done = talk(
        rekindle.state,
        ("--operator",),
        ("stop", {"name": "web", "reason": "because"}),
        ("stop", {"name": "web", "reason": REASON}),
    )
    assert names > READS
    assert "give a reason" in refused
    assert [each["result"] for each in done["results"]] == ["done", "done"]
    running.wait_for("worker:web:0", shown="stopped")
    entries = rekindle("audit", "--json").document["entries"]
    assert [each["action"] for each in entries] == ["stop", "stop"]
    assert all(each["claimed_user"] == "pytest-agent (mcp)" for each in entries)
    assert all(json.loads(each["detail"])["reason"] == REASON for each in entries)


def test_a_proposal_changes_nothing_until_a_person_confirms_it(run: Run) -> None:
    running = run('[worker.web]\ncommand = ["sleep", "1000"]\ncount = 2\n')
    running.wait_for("worker:web:1", status="healthy")
    rekindle = client_of(running)
    _, proposed = talk(rekindle.state, ("--propose",), ("stop", {"name": "web", "reason": REASON}))
    assert [each["proposal"] for each in proposed["results"]] == [1, 2]
    assert [each["shown"] for each in rekindle("status", "--json").document["workers"]] == ["healthy"] * 2
    listed = rekindle("mcp", "proposals", "--json").document["proposals"]
    assert [(each["number"], each["agent"], each["reason"]) for each in listed] == [
        (1, "pytest-agent", REASON),
        (2, "pytest-agent", REASON),
    ]
    assert rekindle("mcp", "reject", "2").code == 0
    assert rekindle("mcp", "confirm", "1").code == 0
    running.wait_for("worker:web:0", shown="stopped")
    assert rekindle("mcp", "confirm", "1").err == "rekindle: there is no proposal 1\n"
    (entry,) = rekindle("audit", "--json").document["entries"]
    assert "for pytest-agent (mcp)" in entry["claimed_user"]
    assert rekindle("mcp", "proposals").lines == ["No proposal is open."]


def test_a_proposal_that_fails_says_why(fleet: Client) -> None:
    number = Proposals(fleet.state).add(ProposedOrder("start", "/workers/nix/start", {}, REASON, "agent"))
    failed = fleet("mcp", "confirm", str(number))
    assert failed.code == 1
    assert "no worker" in failed.err


def test_orders_at_once_and_proposals_exclude_each_other(no_supervisor: Client) -> None:
    answer = no_supervisor("mcp", "--operator", "--propose")
    assert answer.code == 2
    assert "use one of them" in answer.err


def test_without_the_package_the_command_says_what_to_install(tmp_path: Path, no_supervisor: Client) -> None:
    (tmp_path / "mcp").mkdir()
    (tmp_path / "mcp" / "__init__.py").write_text("raise ModuleNotFoundError('gone', name='mcp')\n")
    path = f"{tmp_path}:{IMPORT_PATH}"
    done = subprocess.run(
        [*COMMAND, "mcp"],
        env={**no_supervisor.variables, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 1
    assert "pip install 'rekindle-supervisor[mcp]'" in done.stderr


@pytest.mark.parametrize("reason", ["", "short", "x" * 501, "\n\t  \n"])
def test_a_reason_that_says_nothing_is_refused(reason: str) -> None:
    with pytest.raises(ReasonMissingError):
        checked(reason)


def test_an_agent_cannot_fill_the_disk_with_proposals(tmp_path: Path) -> None:
    proposals = Proposals(tmp_path)
    order = ProposedOrder("stop", "/workers/worker:web:0/stop", {}, REASON, "agent")
    for _ in range(MOST_OPEN):
        proposals.add(order)
    with pytest.raises(OSError, match="proposals are open already"):
        proposals.add(order)
    assert proposals.take(1) == order
    assert proposals.take(1) is None
