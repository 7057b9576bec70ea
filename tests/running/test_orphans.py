"""F8: what dying workers leave behind is adopted, and reaped when it ends."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from tests.processes.waiting import PATIENCE_S, Held, eventually
from tests.running.conftest import Run, Running

AS_PID_1 = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child=SIGTERM")

DEATHS = 4

# The one is killed with its worker, the other has left its session and lives on.
LEAVING = f"""
[worker.leaving]
command = ["bash", "-c", "sleep 2000 & read < <(setsid sh -c 'echo; exec sleep 1000'); exit 1"]
restart = {{ initial_delay_s = 0.01, min_delay_s = 0, max_delay_s = 0.01, max_in_window = {DEATHS - 1} }}
"""


def children(parent: int) -> dict[int, tuple[str, str]]:
    """The children of a process: by pid, the name and the state."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            head, _, tail = stat.read_text().rpartition(")")
        except (FileNotFoundError, ProcessLookupError):
            continue
        state, ppid = tail.split()[:2]
        if int(ppid) == parent:
            found[int(stat.parent.name)] = (head.partition("(")[2], state)
    return found


def living_orphans(supervisor: int) -> list[int]:
    return [pid for pid, (name, state) in children(supervisor).items() if name == "sleep" and state != "Z"]


def no_zombies(supervisor: int) -> bool:
    return all(state != "Z" for _, state in children(supervisor).values())


def can_unshare() -> bool:
    return subprocess.run([*AS_PID_1, "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("within", [(), AS_PID_1], ids=["as one of many", "as PID 1"])
def test_f8_orphans_of_dead_workers_are_reaped_when_they_end(run: Run, within: tuple[str, ...]) -> None:
    if within and not can_unshare():
        pytest.skip("no namespaces of our own here")
    running = run(LEAVING, within=within)
    running.wait_for("worker:leaving:0", shown="failed")
    supervisor = next(iter(children(running.process.pid))) if within else running.process.pid
    assert eventually(lambda: len(living_orphans(supervisor)) == DEATHS)
    for orphan in living_orphans(supervisor):
        os.kill(orphan, signal.SIGKILL)
    assert eventually(lambda: living_orphans(supervisor) == [] and no_zombies(supervisor))
    os.kill(supervisor, signal.SIGTERM)
    assert running.end() == 0


def test_f8_no_exit_status_of_a_worker_is_lost_to_the_reaping_of_orphans(run: Run) -> None:
    many = LEAVING.replace("exit 1", "exit 7").replace("exec sleep 1000", "exit") + "count = 5\n"
    running = run(many)
    for number in range(5):
        running.wait_for(f"worker:leaving:{number}", shown="failed")
        # The last of them may still be on its way into the database.
        assert eventually(lambda: exit_codes(running, f"worker:leaving:{number}") == [7] * DEATHS)  # noqa: B023


def exit_codes(running: Running, name: str) -> list[int]:
    return [death["exit_code"] for death in running.client.get(f"/workers/{name}/history")["deaths"]]


def test_f8_a_guardian_that_was_killed_is_renewed_by_a_supervisor_that_adopts(run: Run) -> None:
    running = run('[worker.sleep]\ncommand = ["sleep", "1000"]\n')
    worker = running.wait_for("worker:sleep:0", status="healthy")["pid"]
    (guardian,) = set(children(running.process.pid)) - {worker}
    os.kill(guardian, signal.SIGKILL)
    assert eventually(lambda: "guardian: ended and is started again" in running.text())
    assert eventually(lambda: len(set(children(running.process.pid)) - {worker, guardian}) == 1)
    assert eventually(lambda: no_zombies(running.process.pid))


def test_what_workers_detached_ends_with_a_clean_stop_too(run: Run) -> None:
    running = run('[worker.det]\ncommand = ["bash", "-c", "setsid sleep 8881 & echo $! ; exec sleep 1000"]\n')
    running.wait_for("worker:det:0", status="healthy")
    assert eventually(lambda: running.client.get("/workers/worker:det:0/output")["lines"])
    stray = int(running.client.get("/workers/worker:det:0/output")["lines"][0])
    with Held([stray]) as held:
        running.stop()
        assert held.all_end(PATIENCE_S)
    assert "supervisor: killing processes that workers detached" in running.text()
