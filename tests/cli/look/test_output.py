"""`rekindle output`, asked of a real supervisor; one of them is killed meanwhile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import AbstractContextManager

import pytest
from tests.cli.conftest import Client, client_of
from tests.processes.waiting import PATIENCE_S, eventually
from tests.running.conftest import Run, Running

TALKERS = """
[worker.talk]
command = ["sh", "-c", "echo one; echo two >&2; echo three; exec sleep 1000"]
count = 2

[worker.again]
command = ["sh", "-c", "echo generation $REKINDLE_GENERATION; exec sleep 1000"]
restart = { initial_delay_s = 0, min_delay_s = 0 }
"""


@pytest.fixture
def talkers(run: Run) -> Running:
    """Two of a group that say three things each, and one that says which start it is."""
    running = run(TALKERS)
    for id_, lines in (("worker:talk:0", 3), ("worker:talk:1", 3), ("worker:again:0", 1)):
        running.wait_for(id_, status="healthy")
        assert eventually(lambda: len(running.client.get(f"/workers/{id_}/output")["lines"]) == lines)  # noqa: B023
    return running


def following(client: Client, *arguments: str) -> AbstractContextManager[subprocess.Popen[str]]:
    return client.running("output", "--follow", *arguments)


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


def test_the_lines_of_a_group_are_distinguished_by_worker_and_stream(talkers: Running) -> None:
    answer = client_of(talkers)("output", "talk")
    assert (answer.code, answer.err) == (0, "")
    for id_ in ("worker:talk:0", "worker:talk:1"):
        own = [each for each in answer.lines if each.startswith(id_)]
        assert sorted(own) == [f"{id_} err | two", f"{id_} out | one", f"{id_} out | three"]
    assert not [each for each in answer.lines if "worker:again" in each]


def test_without_a_name_the_output_of_all_workers_is_shown_and_is_one_document_as_json(
    talkers: Running,
) -> None:
    document = client_of(talkers)("output", "--lines", "1", "--json").document
    assert len(document["lines"]) == 3
    assert {each["component_id"] for each in document["lines"]} == {
        "worker:talk:0",
        "worker:talk:1",
        "worker:again:0",
    }
    assert [each["number"] for each in document["lines"]] == sorted(
        each["number"] for each in document["lines"]
    )


def test_fewer_lines_of_one_worker_may_be_asked_for(talkers: Running) -> None:
    client = client_of(talkers)
    assert len(client("output", "worker:talk:0", "-n", "2").lines) == 2
    assert client("output", "worker:talk:0", "-n", "0").out == ""
    assert len(client("output", "worker:talk:0", "--json", "-n", "1").document["lines"]) == 1


def test_what_is_followed_goes_on_across_restarts_of_the_worker(talkers: Running) -> None:
    with following(client_of(talkers), "again") as process:
        assert line(process) == "generation 1"
        for generation in (2, 3):
            os.kill(talkers.wait_for("worker:again:0", status="healthy")["pid"], signal.SIGKILL)
            assert line(process) == f"generation {generation}"
            talkers.wait_for("worker:again:0", generation=generation)


def test_what_is_followed_goes_on_with_the_next_supervisor(run: Run, talkers: Running) -> None:
    with following(client_of(talkers), "again", "--json") as process:
        assert json.loads(line(process))["text"] == "generation 1"
        talkers.kill()
        again = run(TALKERS)
        found = json.loads(line(process))
        running = again.wait_for("worker:again:0", status="healthy")
        assert (found["text"], found["stream"]) == (f"generation {running['generation']}", "out")


def test_a_reader_that_stopped_reading_does_not_block_the_command(talkers: Running) -> None:
    with following(client_of(talkers), "talk") as process:
        line(process)
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(PATIENCE_S) == 141
        process.stdout = None


def test_following_an_unknown_worker_is_refused(talkers: Running, no_supervisor: Client) -> None:
    answer = client_of(talkers)("output", "--follow", "tlak")
    assert (answer.code, answer.out) == (4, "")
    assert "tlak" in answer.err
    assert no_supervisor("output", "--follow").code == 3


def test_what_could_steer_a_terminal_is_harmless_for_followers_too(every_state: Client) -> None:
    with following(every_state, "chatty") as process:
        assert [line(process), line(process)] == ["plain", "\\x1b[2Jdrawn"]


def test_the_last_lines_are_also_those_of_the_start_before(talkers: Running) -> None:
    """In a crash loop an operator mostly finds a worker that has just started."""
    os.kill(talkers.wait_for("worker:again:0", status="healthy")["pid"], signal.SIGKILL)
    client = client_of(talkers)
    assert eventually(lambda: client("output", "again").lines == ["generation 1", "generation 2"])
