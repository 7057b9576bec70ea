"""`rekindle shutdown` ends a real supervisor and all of its workers."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from tests.cli.conftest import Client
from tests.processes.waiting import PATIENCE_S
from tests.running.conftest import Run, Running

from rekindle.actors import StoreOwnedError
from rekindle.cli.state_files import unsaved_records
from rekindle.cli.supervise.platform.state_lock import StateLock

STUBBORN = """
[worker.stubborn]
command = ["bash", "-c", "trap '' TERM; while :; do sleep 0.1; done"]
stop = { ask_s = 600 }
"""

SLOW = """
[worker.slow]
command = ["bash", "-c", "trap 'sleep 1; exit 3' USR1; while :; do sleep 0.1; done"]
stop = { signal = "SIGUSR1", ask_s = 600 }
"""
"""Ends a second after its own signal; another one would end it at once."""


def test_the_supervisor_ends_with_its_workers_and_is_waited_for(web: Running, rekindle: Client) -> None:
    answer = rekindle("shutdown")
    pid = web.process.pid
    assert (answer.code, answer.err) == (0, "")
    assert answer.lines == [
        f"The supervisor (pid {pid}) is stopping its workers, then itself.",
        "The supervisor has ended.",
    ]
    assert web.end() == 0
    [order] = rekindle("audit", "--json").document["entries"]
    assert (order["action"], order["result"]) == ("shutdown", "done")
    assert rekindle("status").code == 3
    assert rekindle("shutdown").code == 3


def test_a_supervisor_that_is_slow_to_answer_is_asked_only_once(run: Run) -> None:
    """A signal beside the order would be the second one, and the stop a hurried one."""
    running = run(SLOW)
    running.wait_for("worker:slow:0", status="healthy")
    running.process.send_signal(signal.SIGSTOP)
    with Client(running.file.parent / ".rekindle").running("shutdown") as command:
        assert command.stderr is not None
        answer = command.stderr.readline()
        assert answer == "rekindle: the supervisor has not answered yet; it will shut down when it can\n"
        running.process.send_signal(signal.SIGCONT)
        assert command.wait(PATIENCE_S) == 0
    assert running.end() == 0
    assert "worker:slow:0 stopped: exited with code 3" in running.text()


def test_a_second_shutdown_hurries_and_a_third_one_kills(run: Run) -> None:
    running = run(STUBBORN)
    running.wait_for("worker:stubborn:0", status="healthy")
    rekindle = Client(running.file.parent / ".rekindle")
    document = rekindle("shutdown", "--no-wait", "--json").document
    assert document == {"schema": 1, "pid": running.process.pid, "ended": False}
    running.wait_for("worker:stubborn:0", shown="stopping")
    assert rekindle("shutdown", "--no-wait").lines[0].endswith("is stopping its workers, then itself.")
    assert rekindle("shutdown").code == 0
    assert running.end() == 0


def test_the_number_of_lost_records_is_left_for_the_command_until_the_next_start(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with StateLock(state) as lock:
        assert unsaved_records(state) == 0
        lock.note_unsaved(3)
        assert unsaved_records(state) == 3
        with pytest.raises(StoreOwnedError, match=rf"\(pid {os.getpid()}\)"), StateLock(state):
            pass
    with StateLock(state):
        assert unsaved_records(state) == 0
