"""`rekindle shutdown` ends a real supervisor, and everybody with it."""

from __future__ import annotations

from tests.cli.conftest import Client
from tests.running.conftest import Run, Running

STUBBORN = """
[worker.stubborn]
command = ["bash", "-c", "trap '' TERM; while :; do sleep 0.1; done"]
stop = { ask_s = 600 }
"""


def test_the_supervisor_ends_with_its_workers_and_is_waited_for(web: Running, rekindle: Client) -> None:
    said = rekindle("shutdown")
    pid = web.process.pid
    assert (said.code, said.err) == (0, "")
    assert said.lines == [f"The supervisor (pid {pid}) stops its workers, then itself.", "It has ended."]
    assert web.end() == 0
    assert rekindle("status").code == 3
    assert rekindle("shutdown").code == 3


def test_said_again_it_hurries_and_said_a_third_time_it_kills(run: Run) -> None:
    running = run(STUBBORN)
    running.wait_for("worker:stubborn:0", status="healthy")
    rekindle = Client(running.file.parent / ".rekindle")
    document = rekindle("shutdown", "--no-wait", "--json").document
    assert document == {"pid": running.process.pid, "ended": False}
    running.wait_for("worker:stubborn:0", shown="stopping")
    assert rekindle("shutdown", "--no-wait").lines[0].endswith("stops its workers, then itself.")
    assert rekindle("shutdown").code == 0
    assert running.end() == 0
