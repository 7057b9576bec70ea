"""Rollouts of real workers by the command line: a restart, a reload, a bad version."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cli.conftest import client_of
from tests.processes.waiting import eventually
from tests.running.conftest import Run, Running

FILE = """
[worker.web]
command = ["bash", "-c", "{script}"]
count = {count}
ready = {{ output = "up" }}
rollout = {{ surge = 1, settle_s = 0.2 }}
"""
GOOD = "echo up; exec sleep 1000"
BETTER = "echo up again; exec sleep 1000"
BAD = "exit 3"


def started(run: Run, count: int = 2) -> Running:
    running = run(FILE.format(script=GOOD, count=count))
    for number in range(count):
        running.wait_for(f"worker:web:{number}", status="healthy")
    return running


def rewrite(running: Running, script: str, count: int = 2) -> None:
    running.file.write_text(FILE.format(script=script, count=count))


def has_ended(running: Running) -> bool:
    return not running.client.get("/groups/web/rolling")["under_way"]


def test_a_rolling_restart_with_a_surge_says_each_step_and_leaves_the_workers_that_were_there(
    run: Run,
) -> None:
    running = started(run)
    answer = client_of(running)("restart", "--rolling", "web", "--surge", "1")
    assert (answer.code, answer.out) == (0, "web: 2 of 2 workers restarted and healthy.\n")
    assert [re.sub(r"^rollout of web:? ?", "", line) for line in answer.err.splitlines()] == [
        "worker:web:0, worker:web:1, with worker:web:2 beside",
        "worker:web:2 starts with the new version",
        "worker:web:0 gets its new process",
        "the new process of worker:web:0 is well",
        "worker:web:1 gets its new process",
        "the new process of worker:web:1 is well",
        "worker:web:2 stops",
        "is complete: worker:web:0, worker:web:1 replaced",
    ]
    assert {id_: worker["generation"] for id_, worker in running.workers().items()} == {
        "worker:web:0": 2,
        "worker:web:1": 2,
    }
    audited = running.client.get("/audit")["entries"]
    assert [each["action"] for each in audited] == ["rolling_restart"]


def test_a_reload_rolls_the_new_version_out_and_puts_a_bad_one_back(run: Run) -> None:
    running = started(run)
    client = client_of(running)
    rewrite(running, BETTER)
    answer = client("reload")
    assert "rolled out: new processes are ready before the old ones stop" in answer.out, answer
    assert eventually(lambda: has_ended(running)), running.text()
    assert [w["generation"] for w in running.workers().values()] == [2, 2]
    assert output(running)[-1] == "up again"
    rewrite(running, BAD)
    client("reload")
    assert eventually(lambda: has_ended(running)), running.text()
    state = running.client.get("/groups/web/rolling")
    assert "the new process of worker:web:2 ended before it was ready" in state["given_up"]
    assert [w["generation"] for w in running.workers().values()] == [2, 2], "the old processes go on"
    # What is in the file is tried again.
    rewrite(running, GOOD)
    client("reload")
    assert eventually(lambda: has_ended(running) and output(running)[-1] == "up"), running.text()


def output(running: Running) -> list[str]:
    return list(running.client.get("/workers/worker:web:0/output")["lines"])


def test_status_shows_a_rollout_under_way(run: Run, tmp_path: Path) -> None:
    go = tmp_path / "go"
    running = started(run, 1)
    rewrite(running, f"until [ -e {go} ]; do sleep 0.01; done; {GOOD}", 1)
    client = client_of(running)
    client("reload")
    running.wait_for("worker:web:1", shown="starting")
    assert "Rollout of web: 0 of 1 replaced, worker:web:1 beside" in client("status").out
    refused = client("reload")
    assert refused.code != 0
    assert "a rollout of web is under way" in refused.err
    go.touch()
    assert eventually(lambda: has_ended(running)), running.text()
    assert "Rollout" not in client("status").out


def test_a_version_that_is_bad_costs_no_old_process_and_the_command_says_so(run: Run, tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    running = run(FILE.format(script=f"[ -e {bad} ] && exit 3; {GOOD}", count=2))
    for number in range(2):
        running.wait_for(f"worker:web:{number}", status="healthy")
    before = {id_: worker["pid"] for id_, worker in running.workers().items()}
    bad.touch()
    answer = client_of(running)("restart", "--rolling", "web")
    assert answer.code == 1
    assert "the new process of worker:web:2 ended before it was ready" in answer.err
    assert "the workers that were not restarted run their old processes" in answer.err
    assert {id_: worker["pid"] for id_, worker in running.workers().items()} == before


def test_a_surge_goes_with_a_rolling_restart_only(run: Run) -> None:
    answer = client_of(started(run, 1))("restart", "web", "--surge", "1")
    assert (answer.code, "--surge goes with --rolling" in answer.err) == (2, True)


def test_a_supervisor_that_is_killed_during_a_rollout_leaves_no_process_and_applies_the_file(
    run: Run, tmp_path: Path
) -> None:
    running = started(run, 1)
    rewrite(running, f"until [ -e {tmp_path / 'go'} ]; do sleep 0.01; done; {GOOD}", 1)
    client_of(running)("reload")
    spare = running.wait_for("worker:web:1", shown="starting")
    assert eventually(lambda: running.worker("worker:web:1").get("pid") is not None)
    pids = [worker["pid"] for worker in running.workers().values()]
    assert spare["generation"] == 1
    running.kill()
    assert eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids)), pids
    again = run(FILE.format(script=BETTER, count=1))
    again.wait_for("worker:web:0", status="healthy")
    assert list(again.workers()) == ["worker:web:0"]
