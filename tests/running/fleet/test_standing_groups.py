"""`[group.NAME]` in `rekindle run`: reloads, commands, and what is shown."""

from __future__ import annotations

from tests.processes.waiting import eventually
from tests.running.conftest import Run, Running

QUICK = "restart = { initial_delay_s = 0.01, max_delay_s = 0.01, min_delay_s = 0 }"
SLEEP = f'command = ["sleep", "1000"]\n{QUICK}\n'
WORKERS = f"[worker.db]\n{SLEEP}[worker.api]\n{SLEEP}[worker.web]\n{SLEEP}"
IDS = ("worker:db:0", "worker:api:0", "worker:web:0")


def all_healthy(running: Running, generation: int = 1) -> None:
    for id_ in IDS:
        running.wait_for(id_, shown="healthy", generation=generation)


def group(strategy: str) -> str:
    return f'[group.all]\nmembers = ["db", "api", "web"]\nstrategy = "{strategy}"\n'


def kill(running: Running, name: str) -> None:
    running.order("workers", name, "signal", signal="SIGKILL")


def test_a_reload_adds_changes_and_removes_groups_without_a_restart(run: Run) -> None:
    running = run(WORKERS)
    all_healthy(running)
    pids = {id_: running.worker(id_)["pid"] for id_ in IDS}
    for strategy in ("one_for_one", "one_for_all"):
        running.file.write_text(WORKERS + group(strategy))
        running.order("reload")
    assert {id_: running.worker(id_)["pid"] for id_ in IDS} == pids
    kill(running, "worker:api:0")
    all_healthy(running, generation=2)
    running.file.write_text(WORKERS)
    running.order("reload")
    kill(running, "worker:api:0")
    running.wait_for("worker:api:0", shown="healthy", generation=3)
    assert running.worker("worker:db:0")["generation"] == 2


def test_a_reload_with_a_group_that_is_wrong_changes_nothing(run: Run) -> None:
    running = run(WORKERS + group("one_for_all"))
    all_healthy(running)
    running.file.write_text(WORKERS + group("all_for_one"))
    running.process.send_signal(1)
    assert eventually(lambda: "nothing was changed" in running.text())
    kill(running, "worker:api:0")
    all_healthy(running, generation=2)


def test_a_member_may_be_scaled_to_none_and_back(run: Run) -> None:
    running = run(WORKERS + group("one_for_all"))
    all_healthy(running)
    running.order("groups", "api", "scale", count=0)
    assert eventually(lambda: "worker:api:0" not in running.workers())
    running.order("groups", "api", "scale", count=1)
    running.wait_for("worker:api:0", shown="healthy")
    kill(running, "worker:web:0")
    running.wait_for("worker:db:0", shown="healthy", generation=2)
