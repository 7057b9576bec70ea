"""Commands find their supervisor: by the file, from a folder below it, or by a list of all that run."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.cli.conftest import COMMAND, Client, Result, client_of
from tests.processes.waiting import PATIENCE_S
from tests.running.conftest import IMPORT_PATH, Run, Running

from rekindle.cli.agents.proposals import Proposals, ProposedOrder


def rekindle_in(folder: Path, *arguments: str) -> Result:
    """`rekindle` in a folder, with no variable that names a supervisor."""
    plain = {name: value for name, value in os.environ.items() if name != "REKINDLE_STATE"}
    done = subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder,
        env={**plain, "PYTHONPATH": IMPORT_PATH},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S * 2,
        stdin=subprocess.DEVNULL,
    )
    return Result(done.returncode, done.stdout, done.stderr)


def pids(answer: Result) -> set[int]:
    """The supervisors that `ps --json` lists."""
    assert answer.code == 0, answer.err
    return {each["pid"] for each in answer.document["supervisors"]}


def test_a_command_below_the_folder_of_the_supervisor_finds_it(web: Running) -> None:
    below = web.file.parent / "src" / "deep"
    below.mkdir(parents=True)
    answer = rekindle_in(below, "status", "--json")
    assert [each["component_id"] for each in answer.document["workers"]] == ["worker:web:0", "worker:web:1"]


def test_a_state_directory_of_its_own_hides_the_one_above(web: Running) -> None:
    other = web.file.parent / "other"
    (other / ".rekindle").mkdir(parents=True)
    (other / ".rekindle" / "rekindle.db").touch()
    answer = rekindle_in(other, "events")
    assert "other/.rekindle" in answer.err


def test_the_file_names_the_supervisor_for_every_command(run: Run, tmp_path: Path) -> None:
    running = run('state_dir = "run/state"\n[worker.web]\ncommand = ["sleep", "1000"]\n')
    file = str(running.file)
    away = tmp_path / "away"
    away.mkdir()
    assert rekindle_in(away, "status", "--wait", "30s", "-c", file).code == 0
    assert "worker:web:0" in rekindle_in(away, "status", "-c", file).out
    assert rekindle_in(away, "restart", "web", "-c", file).code == 0
    assert rekindle_in(away, "history", "worker:web:0", "-c", file).code == 0
    assert rekindle_in(away, "logs", "web", "-c", file).code == 0


def test_a_file_and_a_state_directory_together_are_refused(no_supervisor: Client, tmp_path: Path) -> None:
    file = tmp_path / "workers.toml"
    file.write_text('[worker.web]\ncommand = ["true"]\n')
    answer = no_supervisor("status", "-c", str(file), "--state", "elsewhere")
    assert answer.code == 2
    assert "-c FILE names the state directory already" in answer.err


@pytest.mark.parametrize("text", ["state_dir = 5", "this is not TOML"])
def test_a_file_that_names_no_state_directory_is_told_in_one_sentence(
    no_supervisor: Client, tmp_path: Path, text: str
) -> None:
    file = tmp_path / "workers.toml"
    file.write_text(text)
    answer = no_supervisor("status", "-c", str(file))
    assert answer.code == 2
    assert "workers.toml: " in answer.err
    assert "Traceback" not in answer.err


def test_ps_lists_every_supervisor_with_its_workers(web: Running, tmp_path: Path) -> None:
    listed = rekindle_in(tmp_path, "ps", "--json").document["supervisors"]
    found = next(each for each in listed if each["pid"] == web.process.pid)
    assert found["state"] == str(web.file.parent / ".rekindle")
    assert [each["shown"] for each in found["workers"]] == ["healthy", "healthy"]
    assert "2 workers: 2 healthy" in rekindle_in(tmp_path, "ps").out


def test_a_supervisor_that_was_killed_is_not_listed(web: Running, tmp_path: Path) -> None:
    assert web.process.pid in pids(rekindle_in(tmp_path, "ps", "--json"))
    web.process.kill()
    web.process.wait(PATIENCE_S)
    assert web.process.pid not in pids(rekindle_in(tmp_path, "ps", "--json"))


def test_the_error_about_a_missing_supervisor_points_to_those_that_run(
    web: Running, tmp_path_factory: pytest.TempPathFactory
) -> None:
    nowhere = tmp_path_factory.mktemp("nowhere")
    answer = rekindle_in(nowhere, "explain", "web")
    assert answer.code == 3
    assert "running here: --state " in answer.err or "see: rekindle ps" in answer.err


def test_stop_all_and_start_all_reach_every_worker(rekindle: Client) -> None:
    stopped = rekindle("stop", "--all", "--json")
    assert [each["id"] for each in stopped.document["results"]] == ["worker:web:0", "worker:web:1"]
    assert rekindle("start", "--all").lines == ["worker:web:0 is starting.", "worker:web:1 is starting."]
    assert rekindle("restart", "--all").code == 0


@pytest.mark.parametrize("command", ["stop", "start", "restart"])
def test_a_command_without_a_worker_or_with_both_is_refused(no_supervisor: Client, command: str) -> None:
    for arguments in ((), ("web", "--all")):
        answer = no_supervisor(command, *arguments)
        assert answer.code == 2
        assert "name the workers or groups, or all of them with --all" in answer.err


def test_which_supervisor_is_meant_may_stand_before_the_command(every_state: Client, tmp_path: Path) -> None:
    state = str(every_state.state)
    assert "worker:spent:0" in rekindle_in(tmp_path, "--state", state, "status").out
    assert "worker:spent:0" in rekindle_in(tmp_path, f"--state={state}", "list", "spent").out
    assert rekindle_in(tmp_path, "--state", state, "jobs", "list", "--limit", "1").code == 0
    unknown = rekindle_in(tmp_path, "--state", state, "sttaus")
    assert (unknown.code, "No such command 'sttaus'" in unknown.err) == (2, True)
    not_asked = rekindle_in(tmp_path, "--state", state, "completion", "bash")
    assert (not_asked.code, "No such option '--state'" in not_asked.err) == (2, True)


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("mcp --url https://127.0.0.1:1 --token-file x confirm 3", "--url"),
        ("mcp --operator confirm 3", "--operator"),
        ("alerts --url https://127.0.0.1:1 test pager -c workers.toml", "--url"),
    ],
)
def test_an_option_before_a_subcommand_that_does_not_have_it_is_refused(
    tmp_path: Path, command: str, option: str
) -> None:
    (tmp_path / "workers.toml").touch()
    answer = rekindle_in(tmp_path, *command.split())
    assert (answer.code, f"No such option '{option}'" in answer.err) == (2, True), answer.err


def test_a_proposal_is_taken_from_the_supervisor_that_is_named_before_the_subcommand(
    tmp_path: Path,
) -> None:
    here, away = tmp_path / ".rekindle", tmp_path / "away"
    for state in (here, away):
        state.mkdir(mode=0o700)
        Proposals(state).add(ProposedOrder("restart", "/workers/web/restart", {}, "a test", "pytest"))
    rejected = rekindle_in(tmp_path, "mcp", "--state", str(away), "reject", "1")
    assert rejected.code == 0, rejected.err
    assert [len(list(Proposals(state).open())) for state in (here, away)] == [1, 0]


def test_a_state_of_jobs_in_place_of_a_directory_is_told_the_right_option(no_supervisor: Client) -> None:
    answer = no_supervisor("jobs", "list", "--state", "toxic")
    assert (answer.code, "--in-state toxic" in answer.err) == (2, True)


def test_a_filter_knows_the_beginning_of_a_status(every_state: Client) -> None:
    workers = every_state("status", "--filter", "fail", "--json").document["workers"]
    assert {each["shown"] for each in workers} == {"failed"}


def test_status_is_ordered_by_name_or_as_wished(every_state: Client) -> None:
    def ids(*arguments: str) -> list[str]:
        report = every_state("status", "--json", *arguments).document
        return [each["component_id"] for each in report["workers"]]

    assert ids() == sorted(ids())
    assert ids("--sort", "trouble")[:2] == ["worker:spent:0", "worker:flaky:0"]
    assert ids("--filter", "failed", "--filter", "web") == ["worker:spent:0", "worker:web:0", "worker:web:1"]
    assert every_state("status", "--filter", "unknown").lines == ["No matching workers."]


def test_a_wide_status_shows_what_a_worker_runs_and_uses(every_state: Client) -> None:
    heading, *rows = every_state("status", "web", "--wide").lines
    assert {"CPU", "MEMORY", "COMMAND"} <= set(heading.split())
    assert len(rows) == 2
    assert all("sleep 1000" in row and " MB " in row and " % " in row for row in rows)
    worker = every_state("status", "web", "--wide", "--json").document["workers"][0]
    assert worker["command"] == "sleep 1000"
    assert worker["usage"]["memory_mb"] > 0


def test_without_a_supervisor_status_shows_what_is_persisted(run: Run) -> None:
    running = run(
        '[worker.bad]\ncommand = ["sh", "-c", "exit 3"]\n'
        "restart = { max_in_window = 1, initial_delay_s = 0, min_delay_s = 0 }\n"
    )
    running.wait_for("worker:bad:0", shown="failed")
    rekindle = client_of(running)
    running.stop()
    answer = rekindle("status")
    assert answer.code == 3
    assert "worker:bad:0" in answer.lines[1]
    assert "exited with code 3; given up: " in answer.lines[1]
    document = json.loads(rekindle("status", "bad", "--json").out)
    assert document["running"] is False
    assert document["workers"][0]["shown"] == "failed"


def test_a_worker_that_ended_with_its_supervisor_is_lost_and_keeps_its_number(run: Run) -> None:
    running = run('[worker.web]\ncommand = ["sleep", "1000"]\n')
    running.wait_for("worker:web:0", status="healthy")
    rekindle = client_of(running)
    rekindle("restart", "web")
    running.wait_for("worker:web:0", status="healthy", generation=2)
    running.client.post("/workers/worker:web:0/reset")  # committed after the start
    running.kill()
    (worker,) = json.loads(rekindle("status", "--json").out)["workers"]
    assert (worker["shown"], worker["generation"]) == ("lost", 2)
    assert "supervisor lost" in rekindle("status").lines[1]
