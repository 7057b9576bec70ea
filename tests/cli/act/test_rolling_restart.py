"""A rolling restart, followed to its end."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Client, client_of
from tests.cli.documents import down, worker
from tests.cli.terminals import Terminal
from tests.processes.waiting import eventually
from tests.running.conftest import Run, Running

from rekindle.cli.console.rolling_restart import progress

IDS = ("a", "b", "c", "d")


def test_progress_tells_who_is_done_who_is_left_who_failed_and_who_stayed_down() -> None:
    before = {
        "a": worker("a"),
        "b": worker("b"),
        "c": worker("c"),
        "d": down("stopped", component_id="d"),
    }
    now = {
        "a": worker("a", generation=2),
        "b": worker("b", generation=2, status="pending", shown="starting"),
        "c": down("failed", component_id="c"),
        "d": before["d"],
    }
    reached = progress(IDS, before, now)
    assert (reached.done, reached.left, reached.failed, reached.spared) == (("a",), ("b",), ("c",), ("d",))


def test_a_worker_that_was_removed_meanwhile_is_not_waited_for() -> None:
    reached = progress(("a", "b"), {"a": worker("a"), "b": worker("b")}, {"a": worker("a", generation=2)})
    assert (reached.done, reached.left) == (("a",), ())


def test_a_rolling_restart_ends_when_every_worker_is_new_and_healthy(web: Running, rekindle: Client) -> None:
    before = web.workers()
    answer = rekindle("restart", "--rolling", "web")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out == "web: 2 of 2 workers restarted and healthy.\n"
    for id_, now in web.workers().items():
        assert now["generation"] > before[id_]["generation"]
        assert now["status"] == "healthy"


def test_a_rolling_restart_tells_in_json_who_was_restarted_and_who_stayed_down(run: Run) -> None:
    running = run('[worker.web]\ncommand = ["sleep", "1000"]\ncount = 2\nmin_healthy = 0\n')
    running.wait_for("worker:web:0", status="healthy")
    client = client_of(running)
    client("stop", "worker:web:1")
    document = client("restart", "--rolling", "web", "--json").document
    assert document["result"] == "done"
    assert document["detail"]["restarted"] == ["worker:web:0"]
    assert document["detail"]["spared"] == ["worker:web:1"]


def test_a_rolling_restart_goes_on_when_the_new_process_is_ready(run: Run, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    waits = f"until [ -e {gate} ]; do sleep 0.02; done; echo up; exec sleep 1000"
    running = run(
        f'[worker.web]\ncommand = ["sh", "-c", "{waits}"]\ncount = 2\nready = {{ output = "^up$" }}\n'
    )
    before = [running.wait_for(f"worker:web:{n}", status="healthy")["generation"] for n in range(2)]
    gate.unlink()
    client_of(running)("restart", "--rolling", "web", "--no-wait")
    running.wait_for("worker:web:0", generation=before[0] + 1, status="pending")
    assert running.worker("worker:web:1")["generation"] == before[1]
    gate.touch()
    running.wait_for("worker:web:1", generation=before[1] + 1, status="healthy")


def test_a_person_sees_how_far_a_rolling_restart_is(rekindle: Client) -> None:
    with Terminal(rekindle, "restart", "--rolling", "web") as terminal:
        terminal.read_until(r"\d of 2 restarted")
        terminal.read_until("web: 2 of 2 workers restarted and healthy")
        assert terminal.end() == 0


def test_a_rolling_restart_need_not_be_waited_for(web: Running, rekindle: Client) -> None:
    before = web.worker("worker:web:1")["generation"]
    answer = rekindle("restart", "--rolling", "web", "--no-wait")
    assert answer.out == "The rolling restart of web (2 workers) has started.\n"
    web.wait_for("worker:web:1", generation=before + 1, status="healthy")


def test_a_rolling_restart_that_comes_to_nothing_fails(run: Run) -> None:
    running = run('[worker.web]\ncommand = ["sleep", "1000"]\ncount = 2\nmin_healthy = 1\n')
    for number in range(2):
        running.wait_for(f"worker:web:{number}", status="healthy")
    client = client_of(running)
    client("stop", "worker:web:1")  # now the file does not let the other one be spared
    answer = client("restart", "--rolling", "web", "--timeout", "1")
    assert answer.code == 1
    spared = "not restarted because stopped or failed: worker:web:1"
    assert answer.out == f"web: 0 of 1 workers restarted and healthy; {spared}.\n"
    assert answer.err == "rekindle: no progress for 1 s; not restarted: worker:web:0\n"


HEALTHY = 'printf \'{"status":"healthy"}\\n\' >&$REKINDLE_FD; '


@pytest.mark.parametrize(
    ("reports", "good", "bad"),
    [
        ("false", "echo up; exec sleep 1000", "sleep 0.3; exit 1"),
        ("true", HEALTHY + "echo up; exec sleep 1000", f"sleep 1.3; {HEALTHY} sleep 0.3; exit 1"),
    ],
    ids=["healthy at once", "healthy after a while"],
)
def test_a_bad_version_costs_one_worker_of_a_rolling_restart_and_not_all(
    run: Run, tmp_path: Path, reports: str, good: str, bad: str
) -> None:
    """A program that ran for a moment before it failed was taken for healthy, one worker after the other."""
    program = tmp_path / "app.sh"
    program.write_text(f"{good}\n")
    running = run(
        f'[worker.web]\ncommand = ["bash", "{program}"]\ncount = 3\nmin_healthy = 2\n'
        f"reports_health = {reports}\nhealth = {{ staleness_s = 60, heartbeat_interval_s = 20 }}\n"
    )
    for number in range(3):
        running.wait_for(f"worker:web:{number}", status="healthy")
        where = f"/workers/worker:web:{number}/output"
        assert eventually(lambda: running.client.get(where)["lines"] == ["up"])  # noqa: B023  # it has read its program
    program.write_text(f"{bad}\n")
    answer = client_of(running)("restart", "--rolling", "web")
    assert answer.code == 1
    assert "worker:web:0" in answer.err
    assert "the workers that were not restarted run their old processes" in answer.err
    others = [running.worker(f"worker:web:{number}") for number in (1, 2)]
    assert [(each["generation"], each["status"]) for each in others] == [(1, "healthy")] * 2
    assert eventually(lambda: "did not stay up" in running.text())
