"""What the real command shows of a real supervisor."""

from __future__ import annotations

import os
import re

from tests.cli.conftest import Client
from tests.processes.waiting import eventually
from tests.running.conftest import Run


def line_of(text: str, worker: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(worker))


def test_status_shows_every_worker_and_what_happens_next(many: Client) -> None:
    said = many("status")
    assert (said.code, said.err) == (0, "")
    assert said.lines[0].split() == ["WORKER", "STATUS", "PID", "UPTIME", "JOB", "RESTARTS", "NEXT"]
    assert re.fullmatch(r"worker:web:0 +healthy +\d+ +\d+ \w+ +- +0/5", line_of(said.out, "worker:web:0"))
    assert re.search(r"1/5 +restart 1 of 5 in 16 min$", line_of(said.out, "worker:flaky"))
    assert "failed: 1 restart in 5 min; last death: killed by SIGSEGV" in line_of(said.out, "worker:spent")
    assert line_of(said.out, "worker:late").endswith("waits for worker:mute:0")
    assert line_of(said.out, "worker:mute").split()[1] == "starting"


def test_status_in_a_pipe_has_no_colour_and_is_not_cut(many: Client) -> None:
    said = Client(many.state, {"COLUMNS": "20"})("status")
    assert "\x1b" not in said.out
    assert "SIGSEGV" in said.out


def test_status_as_json_is_what_the_server_gives(many: Client) -> None:
    document = many("status", "--json").document
    assert sorted(document) == ["breakers", "degraded", "gateways", "paused", "unsaved", "workers"]
    by_id = {worker["component_id"]: worker for worker in document["workers"]}
    assert by_id["worker:web:0"]["status"] == "healthy"
    assert by_id["worker:flaky:0"]["budget"]["in_window"] == 1


def test_status_of_some_workers_shows_them_in_the_order_asked_for(many: Client) -> None:
    said = many("status", "worker:web:1", "worker:flaky:0", "worker:web:1")
    assert [line.split()[0] for line in said.lines[1:]] == ["worker:web:1", "worker:flaky:0"]
    document = many("status", "worker:web:1", "--json").document
    assert [worker["component_id"] for worker in document["workers"]] == ["worker:web:1"]


def test_the_wide_status_shows_more_columns(many: Client) -> None:
    assert {"EXACTLY", "GEN", "TOTAL"} < set(many("status", "--wide").lines[0].split())


def test_explain_answers_in_sentences(many: Client) -> None:
    said = many("explain", "worker:spent:0")
    assert said.code == 0
    assert said.out.startswith("worker:spent:0 was given up: ")
    assert "rekindle restart worker:spent:0" in said.out
    assert many("explain", "worker:spent:0", "--json").document["text"] in said.out


def test_history_tells_each_death_and_the_decision_on_it(many: Client) -> None:
    said = many("history", "worker:spent:0")
    newest, first, _, again = said.lines[1:]
    assert re.search(r"ago|just now", newest)
    assert re.search(
        r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d +2 +killed by SIGSEGV .* given up", newest
    )
    assert re.search(r" 1 +killed by SIGSEGV .* restart +0 s +Restart #1", first)
    assert re.fullmatch(r"--bundle 2: The same crash, 2 times since .*: segmentation fault; .*", again)


def test_history_shows_no_more_than_asked_for(many: Client) -> None:
    (death,) = many("history", "worker:spent:0", "--limit", "1", "--json").document["deaths"]
    assert (death["generation"], death["signal"]) == (2, 11)


def test_a_worker_that_never_died_has_no_history(many: Client) -> None:
    assert many("history", "worker:web:0").out == "worker:web:0 has not died.\n"


def test_output_is_made_harmless_and_complete_as_json(many: Client) -> None:
    said = many("output", "worker:chatty:0")
    assert "\x1b" not in said.out
    assert said.lines[0] == "plain"
    assert said.lines[1].endswith("[2Jdrawn")
    assert many("output", "worker:chatty:0", "--json").document["id"] == "worker:chatty:0"


def test_an_audit_without_orders_says_so(many: Client) -> None:
    assert many("audit").out == "No order was given yet.\n"
    assert many("audit", "--json").document == {"entries": []}


def test_the_state_directory_is_an_option_too(many: Client, nobody: Client) -> None:
    assert nobody("status", "--state", str(many.state)).code == 0


def test_resources_shows_what_each_running_worker_uses(many: Client) -> None:
    said = many("resources")
    assert said.lines[0].split() == ["WORKER", "MEMORY", "CPU", "THREADS", "DESCRIPTORS"]
    assert re.search(r"^worker:web:0 +\d+\.\d MB +\d+\.\d % +\d+ +\d+$", said.out, re.M)
    assert "worker:spent:0" not in said.out
    (used,) = many("resources", "worker:web:1", "--json").document["workers"]
    assert used["id"] == "worker:web:1"
    assert used["memory_mb"] > 0


def test_f8_resources_lists_who_left_the_session_of_its_worker(run: Run) -> None:
    running = run("[worker.fork]\ncommand = ['sh', '-c', 'setsid sleep 1000 & exec sleep 1000']\n")
    running.wait_for("worker:fork:0", status="healthy")
    rekindle = Client(running.file.parent / ".rekindle")
    assert eventually(lambda: rekindle("resources", "--json").document["strays"])
    (stray,) = rekindle("resources", "fork", "--json").document["strays"]
    assert stray["id"] == "worker:fork:0"
    assert os.getsid(stray["pid"]) == stray["pid"]
    said = rekindle("resources").lines[-1]
    assert said == f"worker:fork:0: process {stray['pid']} left its session, and outlives it"


def test_resources_of_a_worker_that_is_not_there_is_an_error(many: Client) -> None:
    assert many("resources", "worker:nobody:0").code == 4
