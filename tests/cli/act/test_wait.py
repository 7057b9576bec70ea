"""`rekindle wait`: for scripts that start something and need it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Client, client_of
from tests.running.conftest import Run

from rekindle.cli.console.state_wait import AwaitedState, NeverError, is_there


def test_a_script_waits_for_a_task_then_for_the_service_and_for_its_stop(run: Run, tmp_path: Path) -> None:
    go = tmp_path / "go"
    running = run(
        f"""
[worker.migrate]
command = ["sh", "-c", "while ! test -e {go}; do sleep 0.05; done"]
kind = "once"

[worker.api]
command = ["sleep", "1000"]
after = ["migrate"]
"""
    )
    running.wait_for("worker:migrate:0", status="healthy")
    rekindle = client_of(running)
    late = rekindle("wait", "api", "--timeout", "0.5s")
    assert late.code == 1
    assert late.err.startswith("rekindle: not ready after 0.5 s: worker:api:0 is starting (")
    with rekindle.running("wait", "migrate", "--done") as waiting:
        go.touch()
        assert waiting.wait() == 0
    ready = rekindle("wait", "migrate", "api", "--ready")
    assert (ready.code, ready.out, ready.err) == (0, "", "")
    assert running.worker("worker:api:0")["status"] == "healthy"
    with rekindle.running("wait", "api", "--stopped") as waiting:
        running.order("workers", "worker:api:0", "stop")
        assert waiting.wait() == 0


def test_the_wait_ends_at_once_if_a_worker_was_given_up(every_state: Client) -> None:
    answer = every_state("wait", "spent", "--timeout", "10m")
    assert answer.code == 1
    assert answer.err.startswith("rekindle: worker:spent:0 was given up: 1 restart in 5 minutes")
    assert every_state("wait", "nothing", "--timeout", "10m").code == 4
    assert every_state("wait", "web", "--done").code == 1


def test_the_wait_for_a_supervisor_that_never_comes_ends_with_code_3(no_supervisor: Client) -> None:
    assert no_supervisor("wait", "web", "--timeout", "0.3s").code == 3
    assert no_supervisor("wait", "web", "--timeout", "soon").code == 2


def worker(**state: Any) -> dict[str, Any]:
    usual = {"component_id": "w", "shown": "starting", "status": "pending", "pid": 7, "kind": "service"}
    return {**usual, "failure_reason": None, **state}


@pytest.mark.parametrize(
    ("state", "wanted", "there"),
    [
        ({"shown": "healthy", "status": "healthy"}, AwaitedState.READY, True),
        ({"shown": "healthy", "status": "unhealthy"}, AwaitedState.READY, False),
        ({"shown": "crashed", "status": "dead", "pid": None}, AwaitedState.READY, False),
        ({"shown": "done", "status": None, "pid": None, "kind": "once"}, AwaitedState.READY, True),
        ({"shown": "done", "status": None, "pid": None, "kind": "once"}, AwaitedState.DONE, True),
        ({"shown": "healthy", "kind": "once"}, AwaitedState.DONE, False),
        ({"shown": "scheduled", "status": None, "pid": None, "kind": "scheduled"}, AwaitedState.READY, True),
        ({"shown": "stopping"}, AwaitedState.STOPPED, False),
        ({"shown": "failed", "pid": None}, AwaitedState.STOPPED, True),
        ({"shown": "crashed", "pid": None}, AwaitedState.STOPPED, False),
    ],
)
def test_a_state_is_the_wanted_one_or_not(state: dict[str, Any], wanted: AwaitedState, there: bool) -> None:
    assert is_there(worker(**state), wanted) is there


def test_a_failed_worker_never_becomes_ready() -> None:
    with pytest.raises(NeverError, match="w was given up: too often"):
        is_there(worker(shown="failed", failure_reason="too often"), AwaitedState.READY)


def test_a_worker_with_a_schedule_is_never_done() -> None:
    with pytest.raises(NeverError, match="has a schedule, which is never done"):
        is_there(worker(shown="scheduled", status=None, pid=None, kind="scheduled"), AwaitedState.DONE)
