"""Order, scale and rolling restarts, over the control socket."""

from __future__ import annotations

import pytest
from tests.processes.waiting import eventually
from tests.running.conftest import Run, Running

from rekindle.cli.client import OrderRefusedError, UnknownTargetError

GROUP = """
[worker.web]
command = ["sleep", "1000"]
count = 3
min_healthy = 2
"""


def started(running: Running) -> list[str]:
    return [line.split()[2] for line in running.text().splitlines() if " started, pid " in line]


def test_a_group_waits_for_another_group(run: Run) -> None:
    running = run(
        "[worker.late]\ncommand = ['sleep', '1000']\nafter = ['early']\n"
        "[worker.early]\ncommand = ['sleep', '1000']\ncount = 2\n"
    )
    running.wait_for("worker:late:0", status="healthy")
    # The log is written once an event is stored, which may be later than the status is known.
    assert eventually(lambda: len(started(running)) == 3)
    assert started(running)[-1] == "worker:late:0"


def test_a_group_is_scaled_up_and_down_while_it_runs(run: Run) -> None:
    running = run(GROUP)
    before = running.wait_for("worker:web:0", status="healthy")["pid"]
    assert running.order("groups", "web", "scale", count=5)["detail"]["added"] == [
        "worker:web:3",
        "worker:web:4",
    ]
    running.wait_for("worker:web:4", status="healthy")
    running.order("groups", "web", "scale", count=1)
    assert eventually(lambda: list(running.workers()) == ["worker:web:0"])
    assert running.worker("worker:web:0")["pid"] == before


def test_an_unknown_group_cannot_be_scaled(run: Run) -> None:
    running = run(GROUP)
    running.wait_for("worker:web:0", status="healthy")
    with pytest.raises(UnknownTargetError):
        running.order("groups", "absent", "scale", count=5)


def test_a_rolling_restart_renews_all_workers_and_keeps_enough_of_them_up(run: Run) -> None:
    running = run(GROUP)
    for number in range(3):
        running.wait_for(f"worker:web:{number}", status="healthy")
    assert running.order("groups", "web", "restart")["detail"]["min_healthy"] == 2
    fewest = 3
    while any(worker["generation"] == 1 for worker in running.workers().values()):
        healthy = [worker for worker in running.workers().values() if worker["status"] == "healthy"]
        fewest = min(fewest, len(healthy))
    assert fewest >= 2
    assert eventually(lambda: "rolling restart of web completed" in running.text())
    assert {worker["restart_count"] for worker in running.workers().values()} == {0}


def test_only_one_rolling_restart_of_a_group_goes_on_at_a_time(run: Run) -> None:
    slow = GROUP.replace(
        '["sleep", "1000"]', """["bash", "-c", "trap 'sleep 1; exit' TERM; sleep 1000 & wait"]"""
    )
    running = run(slow)
    running.wait_for("worker:web:2", status="healthy")
    running.order("groups", "web", "restart")
    with pytest.raises(OrderRefusedError, match="under way"):
        running.order("groups", "web", "restart")
