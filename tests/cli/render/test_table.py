"""The table of workers, as a person sees it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.cli.documents import NO_LIMITS, STEADY, down, report, worker

from rekindle.actors.facts.health_status import ShownStatus
from rekindle.cli.render.job_progress import hold_jobs, with_jobs
from rekindle.cli.render.status_table import COLOURS, footer, outlook, restarts, status_lines, summary
from rekindle.cli.render.text import cells


def test_the_table_is_read_at_a_glance() -> None:
    backing_off = down(
        "crashed",
        component_id="worker:library:0",
        next_attempt_in_ms=11_400,
        why="Restart #4 with 16s backoff",
        budget={**STEADY, "in_window": 4, "lifetime": 4},
    )
    busy = worker(current_job="a.mp3", uptime_ms=7_260_000)
    assert status_lines(report(busy, backing_off)) == [
        "WORKER            STATUS   PID   UPTIME     JOB    RESTARTS  NEXT",
        "worker:tag:0      healthy  4711  2 h 1 min  a.mp3  0/5",
        "worker:library:0  crashed  -     -          -      4/5       restart 4 of 5 in 12 s",
    ]


def test_the_wide_table_shows_the_exact_word_the_generation_and_the_whole_count() -> None:
    recovering = worker("w:0", status="recovering", generation=7, restart_count=6)
    assert status_lines(report(recovering), wide=True) == [
        (
            "WORKER  STATUS   PID   UPTIME  JOB  RESTARTS  STATE       HEARD  GEN  TOTAL  PAUSE  CPU  "
            "MEMORY  COMMAND  NEXT"
        ),
        (
            "w:0     healthy  4711  12 s    -    0/5       recovering  -      7    6      stop   -    "
            "-       -        recovering"
        ),
    ]


def running_job(number: int, **progress: Any) -> dict[str, Any]:
    shown = {"done": None, "total": None, "note": "", "at_wall_ms": 0, **progress}
    return {"job": {"id": number, "claimed_by": "w:0", "claimed_generation": 1, "progress": shown}}


def test_the_progress_of_the_jobs_of_a_worker_is_what_happens_next_to_it() -> None:
    jobs = [running_job(8, done=3, total=4, note="a\nb"), running_job(7, note="loading")]
    former = {"job": {**running_job(6)["job"], "claimed_generation": 0}}
    workers = [worker("w:0", generation=1, current_job=8, said="fine"), worker("w:1", generation=1)]
    one, none = with_jobs(workers, {"jobs": [*jobs[:1], former]})
    assert (outlook(one), outlook(none)) == ("3 of 4 (75%) a\\nb; fine", "")
    (both, _) = with_jobs(workers, {"jobs": jobs})
    assert outlook(both) == "job 7: loading; job 8: 3 of 4 (75%) a\\nb; fine"
    assert hold_jobs(workers)
    assert not hold_jobs([worker(current_job="a.mp3"), worker()])


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (worker(), ""),
        (worker(status="unhealthy"), "unhealthy"),
        (worker(status="pending", shown="starting"), ""),
        (
            worker(status="pending", shown="starting", not_ready=["tcp db:5432: connection refused"]),
            "awaits tcp db:5432: connection refused",
        ),
        (worker(said="serving 4 requests"), "serving 4 requests"),
        (
            worker(status="unhealthy", probes=["GET http://x failed 2 s ago: answered 503", "older"]),
            "unhealthy: GET http://x failed 2 s ago: answered 503",
        ),
        (
            down("failed", failure_reason="5 restarts in 5 minutes; last death: exited with code 1"),
            "failed: 5 restarts in 5 minutes; last death: exited with code 1",
        ),
        (down("failed", failure_reason="no such file", paused=True), "failed: no such file"),
        (down("stopped", waits_for=["worker:db:0", "worker:db:1"]), "waits for worker:db:0, worker:db:1"),
        (
            down("stopped", paused=True, pause_reason="new disk", pause_ends_in_ms=1_740_000),
            "paused: new disk, 29 min left",
        ),
        (worker(paused=True), "paused"),
        (worker(paused=True, pause_ends_in_ms=500), "paused, 1 s left"),
        (down("crashed", next_attempt_in_ms=5000, streak_count=3, budget=NO_LIMITS), "restart 3 in 5 s"),
        (down("crashed", next_attempt_in_ms=0, budget={**STEADY, "in_window": 2}), "restart 2 of 5 now"),
        (down("crashed", why="not restarted: exit 0"), "not restarted: exit 0"),
        (down("stopped", why="stopped", why_code="stopped"), "stays stopped until it is started"),
        (down("stopped", why="not started yet", why_code="not_started"), "not started yet"),
        (down("stopping", why="stopping", why_code="stopping"), ""),
        (down("failed", failure_reason="\x1b[2J\n"), r"failed: \x1b[2J\n"),
    ],
)
def test_the_last_column_says_what_happens_next_or_why_nothing_does(shown: dict[str, Any], said: str) -> None:
    assert outlook(shown) == said


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ({"in_window": 1, "lifetime": 3}, "1/5"),
        ({"in_window": 1, "lifetime": 18}, "18/20"),
        ({"max_in_window": None, "max_lifetime": None, "max_consecutive": 5, "consecutive": 2}, "2/5"),
        ({"max_in_window": None, "max_lifetime": None}, "9"),
    ],
)
def test_restarts_are_shown_against_the_limit_that_is_nearest(
    budget: dict[str, int | None], said: str
) -> None:
    assert restarts(worker(restart_count=9, budget={**STEADY, **budget})) == said


def test_only_the_status_words_are_coloured_and_a_flagged_one_is_yellow() -> None:
    named = worker("healthy", current_job="healthy")
    lines = status_lines(report(named, worker("x", status="unhealthy")), colour=True)
    assert lines[0].startswith("\x1b[1mWORKER")
    assert lines[1].startswith("healthy  \x1b[32mhealthy\x1b[0m  4711")
    assert lines[1].count("\x1b") == 2
    assert "\x1b[33mhealthy\x1b[0m" in lines[2]


@pytest.mark.parametrize("colour", [False, True])
@pytest.mark.parametrize("width", [1, 10, 16, 22, 40, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int, colour: bool) -> None:
    failed = down("failed", failure_reason="漢字 " * 60)
    busy = worker(current_job="ü" * 90)
    lines = status_lines(report(failed, busy, degraded="x" * 300), width=width, colour=colour)
    assert all(cells(re.sub(r"\x1b\[\d+m", "", line)) <= width for line in lines)


def test_a_narrow_terminal_loses_the_end_of_the_last_column_first() -> None:
    lines = status_lines(report(down("failed", failure_reason="so it is said")), width=59)
    assert lines[1] == "worker:tag:0  failed  -    -       -    0         failed: …"


def test_the_job_of_a_worker_cannot_draw_on_the_terminal_or_fill_it() -> None:
    line = status_lines(report(worker(current_job="\x1b[31m" + "x" * 500)))[1]
    assert "\x1b" not in line
    assert len(line) < 100


def test_every_status_has_its_colour() -> None:
    assert set(COLOURS) == {status.value for status in ShownStatus}


def test_the_footer_tells_of_a_pause_and_of_a_degraded_store() -> None:
    assert footer(report(unsaved=3)) == []
    assert footer(report(paused=True, degraded="disk full\n", unsaved=1)) == [
        "",
        "The system is paused; to resume it, run: rekindle resume",
        "The store is degraded, 1 record not saved yet: disk full\\n",
    ]


def test_the_footer_tells_of_a_gateway_that_delivers_nothing() -> None:
    nats = {"name": "nats", "connected": False, "detail": "nats://a: gone\n", "waiting": 7, "dropped": 0}
    assert footer(report(gateways=[nats]))[1:] == [
        "Events are not delivered to nats (7 waiting): nats://a: gone\\n"
    ]
    assert "(7 waiting, 2 dropped)" in footer(report(gateways=[{**nats, "dropped": 2}]))[1]
    sink = {**nats, "name": "alert sink pager"}
    assert footer(report(gateways=[sink]))[1].startswith("Alerts are not delivered to alert sink pager (7")
    assert footer(report(gateways=[{**nats, "connected": True}])) == []


def test_a_supervisor_without_workers_is_reported_to_have_none() -> None:
    assert status_lines(report()) == ["no workers"]


def test_the_summary_counts_each_kind() -> None:
    assert summary([worker(), worker(), down("failed")]) == "3 workers: 2 healthy, 1 failed"
    assert summary([]) == "0 workers"
