"""`rekindle jobs`, with a supervisor and without one."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import COMMAND, Client, Result, client_of
from tests.processes.waiting import PATIENCE_S, eventually
from tests.running.conftest import Running

from rekindle.persistence import open_queue

CONFIG = """
[worker.tag]
python = "tests.processes.job_workers:Obedient.main"
restart = { initial_delay_s = 0, min_delay_s = 0, max_in_window = "none", max_lifetime = "none" }
jobs = { queues = ["tag"], crash_retries = 1 }

[worker.idle]
command = ["sleep", "1000"]
"""


@pytest.fixture(scope="module")
def rekindle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """`rekindle` for a supervisor with one worker that serves the queue `tag`."""
    file = tmp_path_factory.mktemp("jobs") / "workers.toml"
    file.write_text(CONFIG)
    running = Running(file)
    try:
        running.wait_for("worker:tag:0", status="healthy")
        yield client_of(running)
    finally:
        running.stop()


def with_input(client: Client, text: str, *arguments: str) -> Result:
    done = subprocess.run(
        [*COMMAND, *arguments], env=client.variables, capture_output=True, text=True, input=text, timeout=60
    )
    return Result(done.returncode, done.stdout, done.stderr)


def job(client: Client, payload: object, state: str) -> int:
    """The number of a new job that has come to that state."""
    answer = client("jobs", "enqueue", "tag", json.dumps(payload), "--json")
    (number,) = answer.document["ids"]
    assert eventually(lambda: shown(client, number)["state"] == state, PATIENCE_S * 2)
    return int(number)


def shown(client: Client, number: int) -> Any:
    return client("jobs", "show", str(number), "--json").document["job"]


def test_a_job_is_enqueued_done_and_shown(rekindle: Client) -> None:
    number = job(rekindle, {"path": "song.mp3"}, "done")
    found = shown(rekindle, number)
    assert (found["payload"], found["result"]["attempt"]) == ({"path": "song.mp3"}, 1)
    lines = rekindle("jobs", "show", str(number)).lines
    assert lines[0] == f"job        {number} of tag, done"
    assert lines[1] == 'payload    {"path": "song.mp3"}'


def test_a_job_is_shown_with_what_it_belongs_to_and_waits_for(rekindle: Client) -> None:
    unique = ("--unique", "a song", "--unique-for", "1h", "--key", "customer-7", "--in", "1h")
    (first,) = rekindle("jobs", "enqueue", "tag", "{}", *unique, "--json").document["ids"]
    (second,) = rekindle("jobs", "enqueue", "tag", "{}", "--after", str(first), "--json").document["ids"]
    lines = rekindle("jobs", "show", str(first)).lines
    assert {"attempts   0 (0 crashes, 0 errors)", "unique     a song", "key        customer-7"} <= {*lines}
    assert "waits for  1 job" in rekindle("jobs", "show", str(second)).lines
    rekindle("jobs", "cancel", str(first))
    assert f"because of job {first}" in rekindle("jobs", "show", str(second)).lines


def test_a_file_of_lines_is_enqueued_whole_or_not_at_all(rekindle: Client) -> None:
    answer = with_input(rekindle, "{}\n\n[1]\n", "jobs", "enqueue", "tag", "--file", "-", "--json")
    assert len(answer.document["ids"]) == 2
    before = len(rekindle("jobs", "list", "--json").document["jobs"])
    answer = with_input(rekindle, "{}\nNaN\n", "jobs", "enqueue", "tag", "--file", "-")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == (
        "rekindle: line 2 of standard input is not JSON: NaN is not a JSON number; nothing was enqueued\n"
    )
    assert len(rekindle("jobs", "list", "--json").document["jobs"]) == before


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("enqueue", "tga", "{}"), 2, "no worker serves the queue 'tga'; queues that are served: tag"),
        (("enqueue", "not a name", "{}"), 2, "no worker serves the queue 'not a name'"),
        (("enqueue", "tag", "1e999"), 2, "the payload is not JSON: 1e999 is not a JSON number"),
        (("enqueue", "tag", "{"), 2, "the payload is not JSON"),
        (("enqueue", "tag"), 2, "pass the job as JSON, or a JSON Lines file"),
        (("show", "99999"), 1, "there is no job 99999"),
        (("retry", "99999"), 1, "there is no job 99999"),
        (("drop", "99999"), 1, "there is no job 99999"),
        (("cancel", "99999"), 1, "there is no job 99999"),
        (("enqueue", "tag", "{}", "--timeout", "-5s"), 2, "--timeout"),
        (("enqueue", "tag", "{}", "--in", "1h", "--expires-in", "1m"), 2, "expires before its delay_s"),
        (("show", "seven"), 2, "is not a valid integer"),
        (("list", "--in-state", "odd"), 2, "is not one of"),
    ],
)
def test_bad_input_is_a_sentence_and_an_exit_code(
    rekindle: Client, arguments: tuple[str, ...], code: int, message: str
) -> None:
    ended = rekindle("jobs", *arguments)
    assert (ended.code, ended.out) == (code, "")
    assert message in ended.err
    assert "Traceback" not in ended.err


def test_jr_09_a_toxic_job_is_listed_exported_retried_and_dropped(rekindle: Client) -> None:
    number = job(rekindle, {"do": "die", "name": "\x1b[31mred"}, "toxic")
    lines = rekindle("jobs", "toxic").lines
    assert lines[0].startswith(f"job {number} of tag, toxic ")
    assert lines[0].endswith(": failed after 2 worker crashes")
    assert sum("worker:tag:0, generation" in line for line in lines) == 2
    assert "           | about to die" in lines
    assert "\x1b" not in "".join(lines)
    (exported,) = [json.loads(line) for line in rekindle("jobs", "export").lines]
    assert (exported["job"]["id"], len(exported["crashes"])) == (number, 2)
    assert exported["crashes"][0]["signal"] == 9
    assert rekindle("jobs", "retry", str(number)).out == f"Job {number} is pending again.\n"
    assert eventually(lambda: shown(rekindle, number)["state"] == "toxic", PATIENCE_S * 2)
    assert eventually(lambda: alert_of_the_queue(rekindle)["is_active"])
    assert f"job {number} of tag is toxic: 2 workers died on it" in rekindle("alerts").out
    assert rekindle("jobs", "drop", str(number)).code == 0
    assert rekindle("jobs", "toxic").out == "no toxic jobs\n"
    assert eventually(lambda: not alert_of_the_queue(rekindle)["is_active"])
    orders = [entry["action"] for entry in rekindle("audit", "--json").document["entries"]]
    assert {"enqueue", "retry_job", "drop_job"} <= set(orders)


def test_a_job_is_cancelled_before_and_while_it_runs(rekindle: Client) -> None:
    answer = rekindle("jobs", "enqueue", "tag", "{}", "--in", "1h", "--expires-in", "2h", "--json")
    (waiting,) = answer.document["ids"]
    running = job(rekindle, {"do": "show progress"}, "running")
    assert eventually(lambda: "working" in rekindle("jobs", "list", "--in-state", "running").out)
    assert any(
        line.startswith("progress ") and "of 1000000 (" in line
        for line in rekindle("jobs", "show", str(running)).lines
    )
    held = rf"^It holds job {running} of tag, attempt 1: \d+ of 1000000 \(\d+%\) working\.$"
    assert eventually(lambda: re.search(held, rekindle("explain", "worker:tag:0").out, re.M) is not None)
    row = r"^worker:tag:0 .*%\) working$"  # status leaves it out when the store is slow
    assert eventually(lambda: re.search(row, rekindle("status", "tag").out, re.M) is not None)
    cancelled = rekindle("jobs", "cancel", str(waiting), str(running))
    assert cancelled.lines == [
        f"Job {waiting} is cancelled.",
        f"Job {running} is running and is asked to end.",
    ]
    assert eventually(lambda: shown(rekindle, running)["state"] == "cancelled")
    again = rekindle("jobs", "cancel", str(running))
    assert (again.code, again.out) == (1, "")
    assert f"job {running} is cancelled already: only a job that has not ended can be cancelled" in again.err
    orders = [entry["action"] for entry in rekindle("audit", "--json").document["entries"]]
    assert "cancel_job" in orders


def alert_of_the_queue(client: Client) -> dict[str, Any]:
    """The latest alert about toxic jobs of `tag`; nothing while there is none."""
    alerts = client("alerts", "--all", "--json").document["alerts"]
    found = [each for each in alerts if (each["kind"], each["queue"]) == ("toxic", "tag")]
    latest = max(found, key=lambda each: each["id"], default=None)
    return {"is_active": latest is not None and latest["resolved_at_wall_ms"] is None}


def test_the_figures_of_the_queues_are_shown(rekindle: Client) -> None:
    job(rekindle, {}, "done")
    found = rekindle("jobs", "stats", "--json").document
    assert [queue["queue"] for queue in found["queues"]] == ["tag"]
    assert found["served"] == ["tag"]
    assert found["all"]["completed"] == found["queues"][0]["completed"] > 0
    lines = rekindle("jobs", "stats").lines
    assert lines[0].split() == ["QUEUE", "PENDING", "RUNNING", "DONE", "ERRORS", "TOXIC", "AVERAGE", "LEFT"]
    assert lines[-1].startswith("all ")


def test_a_payload_that_is_larger_than_other_requests_may_be_is_taken(rekindle: Client) -> None:
    answer = with_input(rekindle, json.dumps("x" * 500_000), "jobs", "enqueue", "tag", "--file", "-")
    assert answer.code == 0


def test_large_jobs_are_listed_in_little_memory_and_shown_and_exported_whole(run: Any) -> None:
    """150 jobs of 0.9 MB took 3.7 GB of the supervisor: all of them were decoded into Python objects."""
    running = run(CONFIG)
    running.wait_for("worker:tag:0", status="healthy")
    client = client_of(running)
    payload: list[object] = [{}] * 300_000
    with closing(open_queue(client.state / "rekindle.db")) as queue:
        ids = [queue.enqueue("tag", payload, delay_s=1e6) for _ in range(150)]
    Path(f"/proc/{running.process.pid}/clear_refs").write_text("5")
    before = peak_memory_mb(running.process.pid)
    answer = client("jobs", "list", "--limit", "150", "--json")
    assert len(answer.out) < 400_000
    listed = answer.document["jobs"]
    assert [each["id"] for each in listed] == ids[::-1]
    assert {(each["payload_cut"], len(each["payload"])) for each in listed} == {(True, 1024)}
    assert "[{},{}," in client("jobs", "list", "--limit", "150").out
    assert shown(client, ids[0])["payload"] == payload
    exported = client("jobs", "export", "--in-state", "pending", "--limit", "2").out.splitlines()
    assert [json.loads(line)["job"]["payload"] for line in exported] == [payload, payload]
    assert peak_memory_mb(running.process.pid) < before + 50


def peak_memory_mb(pid: int) -> float:
    (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if "VmHWM" in line)
    return int(line.split()[1]) / 1024


def test_without_a_supervisor_the_database_itself_is_asked(run: Any) -> None:
    running = run(CONFIG)
    running.wait_for("worker:tag:0", status="healthy")
    client = client_of(running)
    running.stop()
    assert client("jobs", "enqueue", "tag", "1").out == "Job 1 is enqueued in tag.\n"
    unique = ("jobs", "enqueue", "tag", "1", "--unique", "k", "--unique-for", "1h")
    assert client(*unique).out == "Job 2 is enqueued in tag.\n"
    assert client(*unique).out == "Job 2 is the same and in tag already; it is not added again.\n"
    added = {"schema": 1, "queue": "tag", "ids": [2], "existing": [2]}
    assert client(*unique, "--json").document == added
    assert client("jobs", "enqueue", "tag", "1", "--unique", "k").code == 2
    by_payload = ("jobs", "enqueue", "tag", "[1]", "--unique-for", "1h")
    assert client(*by_payload).out == "Job 3 is enqueued in tag.\n"
    assert client(*by_payload).out == "Job 3 is the same and in tag already; it is not added again.\n"
    assert client("jobs", "drop", "2", "3").code == 0
    too_large = client("jobs", "enqueue", "tag", "1", "--priority", "2147483648")
    assert (too_large.code, "a priority is between -2147483647 and" in too_large.err) == (2, True)
    assert client("jobs", "enqueue", "tga", "1").code == 2
    assert client("jobs", "show", "2").code == 1
    where = str(client.state / "rekindle.db")
    found = Client(Path("/nowhere"))("jobs", "list", "--database", where, "--json").document
    assert [each["payload"] for each in found["jobs"]] == [1]
    assert client("jobs", "drop", "1").out == "Job 1 is deleted.\n"


def test_neither_a_supervisor_nor_a_database_is_exit_code_three(no_supervisor: Client) -> None:
    assert no_supervisor("jobs", "stats").code == 3


def test_a_database_that_is_not_there_is_not_made(no_supervisor: Client) -> None:
    typo = no_supervisor.state.parent / "typo" / "rekindle.db"
    for command in (("list",), ("enqueue", "tag", "1")):
        answer = no_supervisor("jobs", *command, "--database", str(typo))
        assert (answer.code, answer.out) == (1, "")
        assert f"there is no store at {typo}" in answer.err
    assert not typo.parent.exists()


def test_jobs_are_enqueued_as_a_batch_whose_last_job_runs_at_its_end(rekindle: Client) -> None:
    then = ("--then", '{"last": true}', "--then-queue", "tag")
    added = with_input(
        rekindle, "1\n2\n3\n", "jobs", "enqueue", "tag", "--file", "-", *then, "--json"
    ).document
    assert len(added["ids"]) == 3
    assert eventually(lambda: shown(rekindle, added["callback_id"])["state"] == "done", PATIENCE_S * 2)
    last = shown(rekindle, added["callback_id"])
    assert last["payload"] == {"last": True}
    assert last["batch_counts"] == {"id": added["id"], "total": 3, "done": 3, "failed": 0}
    found = rekindle("jobs", "batch", str(added["id"]), "--json").document
    assert (found["total"], found["done"], found["callback_id"]) == (3, 3, added["callback_id"])
    heading, row, *_ = rekindle("jobs", "batch", str(added["id"])).lines
    assert heading.split()[:3] == ["BATCH", "AGE", "JOBS"]
    assert row.split()[0] == str(added["id"])
    assert rekindle("jobs", "enqueue", "tag", "1", "--then", "2").out.startswith("Batch ")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("enqueue", "tag", "1", "--then", "{"), 2, "is not JSON"),
        (("enqueue", "tag", "1", "--then-queue", "tag"), 2, "--then-queue QUEUE needs --then JSON"),
        (("enqueue", "tag", "1", "--then", "1", "--then-queue", "nowhere"), 2, "nowhere"),
        (("batch", "999999"), 1, "there is no batch 999999"),
        (("batch", "0"), 2, "0 is not in the range"),
    ],
)
def test_a_batch_that_cannot_be_is_refused(
    rekindle: Client, arguments: tuple[str, ...], code: int, words: str
) -> None:
    before = rekindle("jobs", "batches", "--json").document
    answer = rekindle("jobs", *arguments)
    assert (answer.code, words in answer.err) == (code, True), answer
    assert rekindle("jobs", "batches", "--json").document["batches"] == before["batches"]
