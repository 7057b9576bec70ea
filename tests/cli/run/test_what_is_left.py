"""What a worker or a killed supervisor left, wherever a person looks."""

from __future__ import annotations

import os
import signal

from tests.cli.conftest import client_of
from tests.processes.waiting import eventually
from tests.running.conftest import Run

RESTART = "restart = { initial_delay_s = 1000, max_delay_s = 1000 }"
DETACHES = '["bash", "-c", "setsid sleep 8882 & echo $! ; exec sleep 1000"]'


def test_the_views_of_a_death_name_the_processes_that_the_worker_left(run: Run) -> None:
    running = run(f"[worker.det]\ncommand = {DETACHES}\n{RESTART}\n")
    rekindle = client_of(running)
    assert eventually(lambda: rekindle("output", "det").lines)
    left = int(rekindle("output", "det").lines[0])
    os.kill(running.wait_for("worker:det:0", shown="healthy")["pid"], signal.SIGKILL)
    running.wait_for("worker:det:0", shown="crashed")
    shown = f"left           process {left}, ended by Rekindle"
    assert eventually(lambda: shown in rekindle("history", "det", "--bundle", "last").lines)
    assert f"It left process {left}, which Rekindle ended." in rekindle("explain", "det").lines
    assert rekindle("explain", "det", "--json").document["left"] == [left]


def test_the_timeline_says_that_the_supervisor_was_killed(run: Run) -> None:
    text = '[worker.web]\ncommand = ["sleep", "1000"]\n'
    first = run(text)
    first.wait_for("worker:web:0", shown="healthy")
    assert eventually(lambda: "started" in client_of(first)("timeline", "web").out)
    first.kill()
    second = run(text)
    second.wait_for("worker:web:0", shown="healthy")
    words = "ended with its supervisor, which was killed; it had run for at least"
    assert words in client_of(second)("timeline", "web").out
