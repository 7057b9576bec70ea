"""`rekindle output` of workers with log files, with a supervisor and without one."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from tests.cli.conftest import client_of
from tests.processes.waiting import eventually
from tests.running.conftest import Run, Running

from rekindle.cli.top.log_follower import LogFollower

TALKERS = """
[worker.filed]
command = ["sh", "-c", "echo start $REKINDLE_GENERATION; printf '\\\\033[2Jdrawn\\\\n' >&2; exec sleep 1000"]
restart = { initial_delay_s = 0, min_delay_s = 0 }
log = { file = "logs/{name}.log", format = "json" }

[worker.kept]
command = ["sh", "-c", "echo in memory; exec sleep 1000"]
"""


@pytest.fixture
def talkers(run: Run, tmp_path: Path) -> Running:
    """One worker with a log file and one without."""
    running = run(TALKERS)
    running.wait_for("worker:kept:0", status="healthy")
    client = client_of(running)
    assert eventually(lambda: len(client("output", "filed").lines) == 2)
    assert eventually(lambda: client("output", "kept").lines == ["in memory"])
    return running


def test_files_and_memory_are_read_together(talkers: Running) -> None:
    client = client_of(talkers)
    assert sorted(client("output").lines) == [
        "worker:filed:0 err | \\x1b[2Jdrawn",
        "worker:filed:0 out | start 1",
        "worker:kept:0 out | in memory",
    ]
    assert client("output", "--grep", "^start").lines == ["worker:filed:0 out | start 1"]
    assert client("output", "--since", "1h", "--grep", "memory").lines == ["worker:kept:0 out | in memory"]
    assert client("output", "--grep", "no such").err == "No line matches.\n"


def test_every_line_has_a_time_as_json_and_on_request(talkers: Running) -> None:
    client = client_of(talkers)
    for name in ("filed", "kept"):
        document = client("output", name, "--json").document
        assert all(line["at_wall_ms"] > 1_700_000_000_000 for line in document["written"])
        assert [line["text"] for line in document["written"]] == document["lines"]
    (shown,) = client("output", "kept", "--times").lines
    assert shown.endswith(" in memory")
    assert shown[:2] == "20"


def test_without_a_supervisor_the_files_are_read(talkers: Running) -> None:
    client = client_of(talkers)
    talkers.kill()
    assert client("output", "filed", "-n", "1", "--grep", "start").lines == ["start 1"]
    answer = client("output", "kept")
    assert (answer.code, answer.out) == (3, "")
    named = client("output", "-c", str(talkers.file), "--grep", "start")
    assert named.lines == ["worker:filed:0 out | start 1"]


def test_what_is_followed_in_a_file_goes_on_with_the_next_supervisor(run: Run, talkers: Running) -> None:
    with client_of(talkers).running("output", "filed", "--follow", "--grep", "start") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "start 1\n"
        talkers.kill()
        again = run(TALKERS).wait_for("worker:filed:0", status="healthy")
        assert process.stdout.readline() == f"start {again['generation']}\n"


def test_command_line_dashboard_and_terminal_view_show_the_same_after_a_restart(talkers: Running) -> None:
    """The page of the dashboard once said that a restarted worker had written nothing."""
    kept = talkers.wait_for("worker:kept:0", status="healthy")
    os.kill(kept["pid"], signal.SIGKILL)
    client = client_of(talkers)
    assert eventually(lambda: client("output", "kept").lines == ["in memory", "in memory"])
    assert talkers.client.get("/workers/worker:kept:0/output")["lines"] == ["in memory", "in memory"]
    followed = LogFollower(talkers.client, ("worker:kept:0",)).fetch()
    assert followed == "out | in memory\nout | in memory"


def test_bad_options_are_refused(talkers: Running) -> None:
    client = client_of(talkers)
    answer = client("output", "--grep", "list(")
    assert (answer.code, "is not a regular expression" in answer.err) == (2, True)
    assert client("output", "--since", "yesterday").code == 2
