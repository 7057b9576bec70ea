"""What a newcomer types in the first hour."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.conftest import Client, client_of
from tests.cli.terminals import Terminal
from tests.processes.waiting import eventually
from tests.running.conftest import Run, Running

LOADED = """
import sys, click
from rekindle.cli.main import main
echo = click.echo
def spying(text, **options):
    print(text, sorted({"pykka", "sqlalchemy", "loguru", "msgspec"} & set(sys.modules)))
    raise SystemExit(7)
click.echo = spying
main(["run", sys.argv[1]])
"""


def test_the_first_line_of_a_run_is_printed_before_anything_large_is_loaded(tmp_path: Path) -> None:
    file = tmp_path / "workers.toml"
    file.write_text('state_dir = "here"\n[worker.a]\ncommand = ["true"]\n')
    done = subprocess.run([sys.executable, "-c", LOADED, str(file)], capture_output=True, text=True)
    assert done.returncode == 7
    assert done.stdout.endswith(f"INFO    supervisor: starting, state in {tmp_path / 'here'} []\n")


def test_the_log_is_json_from_its_first_line_on_and_carries_what_workers_wrote(run: Run) -> None:
    running = run(
        """[worker.talk]\ncommand = ["sh", "-c", 'echo "{\\"a\\": 1}"; exec sleep 1000']\n""", "--log-json"
    )
    assert eventually(lambda: "talk:0 out" in running.text())
    lines = [json.loads(line) for line in running.text().splitlines()]
    assert lines[0]["message"].startswith("supervisor: starting, state in ")
    (written,) = (line for line in lines if line.get("stream") == "out")
    assert (written["text"], written["worker"]) == ('{"a": 1}', "worker:talk:0")


def test_status_waits_for_a_supervisor_that_starts(run: Run) -> None:
    running = run('[worker.a]\ncommand = ["sleep", "1000"]\n')
    answer = client_of(running)("status", "--wait")
    assert (answer.code, answer.err) == (0, "")


def test_status_does_not_wait_for_ever(no_supervisor: Client) -> None:
    assert no_supervisor("status", "--wait", "0.1s").code == 3


def test_a_rolling_restart_may_name_its_group_first(web: Running, rekindle: Client) -> None:
    before = {worker["pid"] for worker in web.workers().values()}
    answer = rekindle("restart", "web", "--rolling")
    assert (answer.code, answer.out) == (0, "web: 2 of 2 workers restarted and healthy.\n")
    assert before.isdisjoint(worker["pid"] for worker in web.workers().values())


def test_events_are_shown_since_a_time_or_a_number(every_state: Client) -> None:
    hour = every_state("events", "--since", "1h", "--limit", "1000", "--json").document["events"]
    assert [event["id"] for event in hour][:2] == [1, 2]
    assert every_state("events", "--since", "0.001s").out == "There are no events in that time.\n"
    assert every_state("events", "--after", "1", "--json").document["events"][0]["id"] == 2
    refused = every_state("events", "--since", "soon")
    assert "'soon' is not a time; write 90s, 30m, 2h or 1d" in refused.err


def test_the_output_of_a_silent_worker_says_so(every_state: Client) -> None:
    answer = every_state("output", "late")
    assert (answer.code, answer.out, answer.err) == (0, "", "worker:late:0 has not written anything.\n")


def test_the_workers_of_a_group_stay_together_in_the_status(run: Run) -> None:
    running = run('[worker.web]\ncommand = ["sleep", "1000"]\n[worker.clock]\ncommand = ["sleep", "1000"]\n')
    running.wait_for("worker:clock:0", status="healthy")
    rekindle = client_of(running)
    assert rekindle("scale", "web", "2").code == 0
    listed = [worker["component_id"] for worker in rekindle("status", "--json").document["workers"]]
    assert listed == ["worker:clock:0", "worker:web:0", "worker:web:1"]


def test_an_order_to_a_group_leaves_out_members_that_are_being_removed(run: Run) -> None:
    running = run(
        """
[worker.web]
command = ["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"]
count = 3
stop = { ask_s = 1000 }
"""
    )
    running.wait_for("worker:web:2", status="healthy")
    rekindle = client_of(running)
    with rekindle.running("scale", "web", "1"):
        running.wait_for("worker:web:2", shown="stopping")
        answer = rekindle("pause", "web", "--json")
    assert (answer.code, [each["id"] for each in answer.document["results"]]) == (0, ["worker:web:0"])

    def ended_by_another_signal() -> bool:
        running.signal(15)
        return running.process.poll() is not None

    assert eventually(ended_by_another_signal)  # it takes three


def test_a_worker_that_waits_has_no_uptime_and_then_that_of_its_process(every_state: Client) -> None:
    workers = {each["component_id"]: each for each in every_state("status", "--json").document["workers"]}
    late = workers["worker:late:0"]
    assert (late["pid"], late["uptime_ms"]) == (None, None)


@pytest.mark.parametrize("command", ["config", "jobs", "db"])
def test_no_summary_of_a_command_is_cut(no_supervisor: Client, command: str) -> None:
    listed = replace(no_supervisor, environment={"COLUMNS": "200"})(command, "--help").out
    assert "..." not in listed.partition("Commands:")[2]


def test_the_demo_takes_a_time_and_names_a_command_that_works_anywhere(
    no_supervisor: Client, tmp_path: Path
) -> None:
    answer = no_supervisor("demo", "--for", "0.1s", "--state", str(tmp_path / "demo"))
    assert answer.code == 0
    hint = f"{sys.executable} -m rekindle explain worker:calibration:0 --state {tmp_path / 'demo'}"
    assert hint in answer.err


def test_a_lock_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    file = tmp_path / "workers.toml"
    file.write_text('[worker.a]\ncommand = ["true"]\n')
    command = f"ulimit -f 0; exec {sys.executable} -m rekindle run {file}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    lock = tmp_path / ".rekindle" / "supervisor.lock"
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        1,
        f"rekindle: cannot write {lock}: File too large",
    )


def test_the_output_of_a_python_program_is_seen_at_once(run: Run) -> None:
    program = "import time; print(42); time.sleep(1000)"
    running = run(f'[worker.a]\ncommand = ["{sys.executable}", "-c", "{program}"]\n')
    assert eventually(lambda: client_of(running)("output", "a").lines == ["42"])


def test_every_view_shows_what_a_worker_wrote_before_its_restart(run: Run) -> None:
    running = run(
        """
[worker.a]
command = ["sh", "-c", "[ $REKINDLE_GENERATION -gt 1 ] && exec sleep 1000; echo last words; exit 1"]
restart = { initial_delay_s = 0, min_delay_s = 0 }
"""
    )
    running.wait_for("worker:a:0", status="healthy", generation=2)
    assert running.client.get("/workers/worker:a:0/output")["lines"] == ["last words"]


def test_colours_are_shown_on_a_terminal_and_only_colours(run: Run) -> None:
    running = run(
        r"""
[worker.a]
command = ["sh", "-c", "printf '\\033[31mred\\033[0m \\033[2Jcleared\\n'; exec sleep 1000"]
"""
    )
    rekindle = client_of(running)
    assert eventually(lambda: rekindle("output", "a").lines == ["red \\x1b[2Jcleared"])
    with Terminal(rekindle, "output", "a") as terminal:
        terminal.end()
    assert "\x1b[31mred\x1b[0m \\x1b[2Jcleared" in terminal.text
    with Terminal(rekindle, "output", "a", "--no-color") as terminal:
        terminal.end()
    assert "\x1b" not in terminal.text
