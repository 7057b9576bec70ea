"""What the real command shows of a real supervisor."""

from __future__ import annotations

import os
import re

from tests.cli.conftest import Client
from tests.processes.waiting import eventually
from tests.running.conftest import Run


def line_of(text: str, worker: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(worker))


def test_status_shows_every_worker_and_what_happens_next(every_state: Client) -> None:
    answer = every_state("status")
    assert (answer.code, answer.err) == (0, "")
    assert answer.lines[0].split() == ["WORKER", "STATUS", "PID", "UPTIME", "JOB", "RESTARTS", "NEXT"]
    assert re.fullmatch(r"worker:web:0 +healthy +\d+ +\d+ \w+ +- +0/5", line_of(answer.out, "worker:web:0"))
    assert re.search(r"1/5 +restart 1 of 5 in 16 min \d+ s$", line_of(answer.out, "worker:flaky"))
    assert "failed: 1 restart in 5 minutes; last death: killed by SIGSEGV" in line_of(
        answer.out, "worker:spent"
    )
    assert line_of(answer.out, "worker:late").endswith("waits for worker:mute:0")
    assert line_of(answer.out, "worker:mute").split()[1] == "starting"


def test_status_in_a_pipe_has_no_colour_and_is_not_cut(every_state: Client) -> None:
    answer = Client(every_state.state, {"COLUMNS": "20"})("status")
    assert "\x1b" not in answer.out
    assert "SIGSEGV" in answer.out


def test_status_as_json_is_what_the_server_gives(every_state: Client) -> None:
    document = every_state("status", "--json").document
    assert sorted(document) == [
        "breakers",
        "degraded",
        "gateways",
        "groups",
        "paused",
        "paused_queues",
        "rollouts",
        "schema",
        "unsaved",
        "workers",
    ]
    by_id = {worker["component_id"]: worker for worker in document["workers"]}
    assert by_id["worker:web:0"]["status"] == "healthy"
    assert by_id["worker:flaky:0"]["budget"]["in_window"] == 1


def test_status_of_some_workers_shows_them_in_the_order_asked_for(every_state: Client) -> None:
    answer = every_state("status", "worker:web:1", "worker:flaky:0", "worker:web:1")
    assert [line.split()[0] for line in answer.lines[1:]] == ["worker:web:1", "worker:flaky:0"]
    document = every_state("status", "worker:web:1", "--json").document
    assert [worker["component_id"] for worker in document["workers"]] == ["worker:web:1"]


def test_the_wide_status_shows_more_columns(every_state: Client) -> None:
    wide = set(every_state("status", "--wide").lines[0].split())
    assert {"STATE", "HEARD", "GEN", "TOTAL", "PAUSE"} < wide


def test_the_check_fails_and_says_in_one_line_which_workers_are_down(every_state: Client) -> None:
    answer = every_state("status", "--check")
    down = "2 of 7 workers failed or crashed: worker:flaky:0 crashed, worker:spent:0 failed"
    assert (answer.code, answer.out, answer.err) == (1, f"{down}\n", "")
    assert every_state("status", "--check", "--json").code == 1
    assert every_state("status", "--check", "--watch").code == 2


def test_the_check_of_workers_that_run_or_start_succeeds(every_state: Client) -> None:
    answer = every_state("status", "web", "mute", "--check")
    assert (answer.code, answer.out) == (0, "ok: 3 workers, none failed or crashed\n")
    assert every_state("status", "nothing", "--check").code == 4


def test_explain_answers_in_sentences(every_state: Client) -> None:
    answer = every_state("explain", "worker:spent:0")
    assert answer.code == 0
    assert answer.out.startswith("worker:spent:0 was given up: ")
    assert "rekindle restart worker:spent:0" in answer.out
    assert every_state("explain", "worker:spent:0", "--json").document["text"] in answer.out


def test_explain_as_json_gives_the_reasons_as_fields(every_state: Client) -> None:
    spent = every_state("explain", "worker:spent:0", "--json").document
    assert (spent["id"], spent["status"], spent["code"]) == ("worker:spent:0", "failed", "given_up")
    assert (spent["cause"], spent["exit"], spent["signal"]) == ("signalled", None, 11)
    assert (spent["budget"]["in_window"], spent["budget"]["max_in_window"]) == (1, 1)
    assert spent["next_attempt_in_ms"] is None
    assert spent["commands"][0] == "rekindle restart worker:spent:0"
    assert all(command in spent["text"] for command in spent["commands"])
    flaky = every_state("explain", "worker:flaky:0", "--json").document
    assert (flaky["status"], flaky["code"]) == ("crashed", "backoff")
    assert flaky["next_attempt_in_ms"] > 0
    web = every_state("explain", "worker:web:0", "--json").document
    assert (web["code"], web["cause"], web["last_error"], web["commands"]) == ("running", None, "", [])


def test_history_tells_each_death_and_the_decision_on_it(every_state: Client) -> None:
    answer = every_state("history", "worker:spent:0")
    newest, first, _, again = answer.lines[1:]
    assert re.search(r"ago|just now", newest)
    assert re.search(
        r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d +2 +killed by SIGSEGV .* given up", newest
    )
    assert re.search(r" 1 +killed by SIGSEGV .* restart +0 s +Restart #1", first)
    assert re.fullmatch(r"--bundle 2: The same crash, 2 times since .*: segmentation fault; .*", again)


def test_history_shows_no_more_than_asked_for(every_state: Client) -> None:
    (death,) = every_state("history", "worker:spent:0", "--limit", "1", "--json").document["deaths"]
    assert (death["generation"], death["signal"]) == (2, 11)


def test_a_worker_that_never_died_has_no_history(every_state: Client) -> None:
    assert every_state("history", "worker:web:0").out == "worker:web:0 has not died.\n"


def test_output_is_made_harmless_and_complete_as_json(every_state: Client) -> None:
    answer = every_state("output", "worker:chatty:0")
    assert "\x1b" not in answer.out
    assert answer.lines[0] == "plain"
    assert answer.lines[1].endswith("[2Jdrawn")
    assert every_state("output", "worker:chatty:0", "--json").document["id"] == "worker:chatty:0"


def test_an_audit_without_orders_reports_that_it_is_empty(every_state: Client) -> None:
    assert every_state("audit").out == "No orders were given yet.\n"
    assert every_state("audit", "--json").document == {"schema": 1, "entries": []}


def test_the_state_directory_is_an_option_too(every_state: Client, no_supervisor: Client) -> None:
    assert no_supervisor("status", "--state", str(every_state.state)).code == 0


def test_resources_shows_what_each_running_worker_uses(every_state: Client) -> None:
    answer = every_state("resources")
    assert answer.lines[0].split() == ["WORKER", "MEMORY", "CPU", "THREADS", "DESCRIPTORS"]
    assert re.search(r"^worker:web:0 +\d+\.\d MB +\d+\.\d % +\d+ +\d+$", answer.out, re.M)
    assert "worker:spent:0" not in answer.out
    (used,) = every_state("resources", "worker:web:1", "--json").document["workers"]
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
    line = rekindle("resources").lines[-1]
    assert line == f"worker:fork:0: process {stray['pid']} detached from its worker and is still running"


def test_resources_of_a_worker_that_is_not_there_is_an_error(every_state: Client) -> None:
    assert every_state("resources", "worker:unknown:0").code == 4
