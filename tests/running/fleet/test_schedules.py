"""Workers with a schedule in `rekindle run`: their runs are on record whatever becomes of the supervisor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil
from click.testing import CliRunner
from tests.processes.waiting import eventually
from tests.running.conftest import Run, Running

from rekindle.cli.main import main

ID = "worker:job:0"


def scheduled(script: str, **settings: str) -> str:
    """The table of a worker with a schedule that runs a shell script."""
    lines = "".join(f"{key} = {value}\n" for key, value in settings.items())
    return f'[worker.job]\ncommand = ["sh", "-c", """{script}"""]\n{lines}\n'


def runs_of(running: Running) -> list[dict[str, Any]]:
    """The runs, newest first."""
    found: list[dict[str, Any]] = running.client.get(f"/workers/{ID}/runs")["runs"]
    return found


def runs_on(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    return bool(psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)


def test_a_run_begins_by_the_clock_and_the_supervisor_does_not_end_with_it(run: Run) -> None:
    running = run(scheduled("exit 0", every='"1s"'))
    running.wait_for(ID, kind="scheduled")
    assert eventually(lambda: sum(each["state"] == "succeeded" for each in runs_of(running)) >= 2)
    assert all(each["due_wall_ms"] % 1000 == 0 for each in runs_of(running))
    assert running.stop() == 0


def test_run_now_runs_it_and_the_commands_show_it(run: Run) -> None:
    running = run(scheduled("exit 3", cron='"0 3 1 1 *"', restart='{ restart_on = "never" }'))
    running.wait_for(ID, shown="scheduled")
    state = str(running.file.parent / ".rekindle")
    assert CliRunner().invoke(main, ["run-now", "job", "--state", state]).output == f"A run of {ID} begins.\n"
    assert eventually(lambda: [each["state"] for each in runs_of(running)] == ["failed"])
    shown = CliRunner().invoke(main, ["runs", "job", "--state", state]).output
    assert "exited with code 3" in shown
    assert "operator" in shown
    explained = CliRunner().invoke(main, ["explain", "job", "--state", state]).output
    assert "Its schedule is cron '0 3 1 1 *' in UTC; the next run is due in" in explained
    assert "next run in" in CliRunner().invoke(main, ["status", "--state", state]).output
    assert running.stop() == 0
    offline = CliRunner().invoke(main, ["runs", "job", "--state", state])
    assert "exited with code 3" in offline.output


def test_a_run_in_the_middle_of_which_the_supervisor_is_killed_is_lost_and_repeated(
    run: Run, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    text = scheduled(f"echo $$ >> {pids}; exec sleep 1000", cron='"0 3 1 1 *"')
    running = run(text)
    running.wait_for(ID, shown="scheduled")
    running.order("workers", ID, "run-now")
    assert eventually(lambda: pids.exists() and pids.read_text().count("\n") == 1)
    assert eventually(lambda: [each["state"] for each in runs_of(running)] == ["running"])
    running.kill()
    again = run(text)
    assert eventually(lambda: len(again.workers()) == 1 and len(runs_of(again)) == 2)
    made_up, lost = runs_of(again)
    assert (lost["state"], lost["reason"]) == ("lost", "supervisor_lost")
    assert (made_up["trigger"], made_up["number"]) == ("catch_up", 2)
    assert eventually(lambda: pids.read_text().count("\n") == 2)
    first, second = map(int, pids.read_text().split())
    assert not runs_on(first)
    assert runs_on(second)
    assert again.stop() == 0


def test_a_run_that_takes_too_long_is_ended_by_the_stop_ladder(run: Run) -> None:
    text = scheduled("trap '' TERM; while :; do sleep 0.1; done", cron='"0 3 1 1 *"', timeout_s="0.3")
    running = run(text + "stop = { ask_s = 0.1, term_s = 0.2 }\n")
    running.wait_for(ID, shown="scheduled")
    running.order("workers", ID, "run-now")
    assert eventually(lambda: [each["state"] for each in runs_of(running)] == ["failed"])
    [failed] = runs_of(running)
    assert (failed["reason"], failed["signal"]) == ("timeout", 9)
    [death] = running.client.get(f"/workers/{ID}/history")["deaths"]
    assert (death["cause"], death["action"]) == ("timeout", "none")


def test_an_orderly_stop_ends_the_run_and_the_row_says_so(run: Run) -> None:
    running = run(scheduled("exec sleep 1000", cron='"0 3 1 1 *"', missed='"skip"'))
    running.wait_for(ID, shown="scheduled")
    running.order("workers", ID, "run-now")
    running.wait_for(ID, shown="healthy")
    assert running.stop() == 0
    state = str(running.file.parent / ".rekindle")
    said = CliRunner().invoke(main, ["runs", "job", "--state", state]).output
    assert "the supervisor was shut down" in said
