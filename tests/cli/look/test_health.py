"""`rekindle health`: an exit code for a container's health check."""

from __future__ import annotations

import os
import signal

from tests.cli.conftest import Client
from tests.processes.waiting import eventually
from tests.running.conftest import Run


def test_the_exit_code_says_whether_all_is_well_and_the_text_what_is_not(every_state: Client) -> None:
    answer = every_state("health")
    assert answer.code == 1
    assert "worker:spent:0 was given up: " in answer.out
    assert "worker:flaky:0 crashed: " in answer.out
    assert "worker:web:0" not in answer.out
    document = every_state("health", "--json").document
    assert (document["healthy"], document["ready"]) == (False, False)


def test_one_worker_can_be_asked_for(every_state: Client) -> None:
    well = every_state("health", "worker:web:0", "--max-age", "1h", "--ready")
    assert (well.code, well.out) == (0, "well: 1 worker\n")
    assert every_state("health", "worker:spent:0").code == 1
    assert every_state("health", "absent").code == 4
    starting = every_state("health", "worker:mute:0", "--ready")
    assert (starting.code, starting.out) == (1, "a worker is starting\n")
    assert every_state("health", "worker:mute:0").code == 0


def test_a_worker_that_is_silent_for_longer_than_asked_for_is_not_well(run: Run) -> None:
    running = run(
        """
[worker.beat]
command = ["sh", "-c", "echo '{\\"status\\": \\"healthy\\"}' >&$REKINDLE_FD; exec sleep 1000"]
reports_health = true
health = { staleness_s = 600.0 }
"""
    )
    pid = running.wait_for("worker:beat:0", status="healthy")["pid"]
    client = Client(running.file.parent / ".rekindle")
    assert client("health", "--max-age", "10m").code == 0
    assert eventually(lambda: client("health", "--max-age", "0.2").code == 1)
    os.kill(pid, signal.SIGKILL)
