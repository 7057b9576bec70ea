"""What the view shows, from a report and the time that has passed since."""

from __future__ import annotations

from typing import Any

from tests.cli.documents import worker

from rekindle.cli.client import ControlClient
from rekindle.cli.top.board import (
    Board,
    alert_rows,
    badge,
    breaker_lines,
    has_new_critical,
    heading,
    rollout_lines,
)
from rekindle.cli.top.log_follower import LogFollower
from rekindle.cli.top.worker_rows import columns, gauge, rows


def alert(number: int = 1, **changes: Any) -> dict[str, Any]:
    return {
        "id": number,
        "severity": "critical",
        "component_id": "worker:tag:0",
        "message": "crashed: killed by SIGKILL",
        "occurrences": 1,
        "escalated": False,
        "acknowledged_at_wall_ms": None,
        "acknowledged_by": None,
        "resolved_at_wall_ms": None,
        **changes,
    }


def test_the_clocks_go_on_between_two_reports() -> None:
    board = Board((worker(pid=7, uptime_ms=5_000),), at=100.0)
    assert rows(board, "", 100.0)[0].cells[3] == "5 s"
    assert rows(board, "", 103.2)[0].cells[3] == "8 s"


def test_the_clocks_stand_still_while_the_supervisor_does_not_answer() -> None:
    board = Board((worker(pid=7, uptime_ms=60_000),), at=100.0, trouble="gone")
    assert rows(board, "", 500.0)[0].cells[3] == "1 min"


def test_those_in_trouble_come_first_and_the_others_keep_their_order() -> None:
    shown = {"a": "healthy", "b": "crashed", "c": "healthy", "d": "failed"}
    board = Board(tuple(worker(id_, shown=word) for id_, word in shown.items()))
    assert [row.component_id for row in rows(board, "", 0.0)] == ["d", "b", "a", "c"]


def test_a_word_filters_by_name_and_by_status() -> None:
    board = Board((worker("worker:tag:0"), worker("worker:web:0", shown="failed")))
    assert [row.component_id for row in rows(board, "TAG", 0.0)] == ["worker:tag:0"]
    assert [row.component_id for row in rows(board, "fail", 0.0)] == ["worker:web:0"]


def test_the_gauge_fills_with_the_budget() -> None:
    budget = {**worker()["budget"], "in_window": 2, "max_in_window": 4, "max_lifetime": None}
    budget["max_consecutive"] = None
    assert gauge(worker(budget=budget)) == "▰▰▱▱ 2/4"


def test_the_gauge_has_a_cell_for_each_restart_of_the_budget_if_the_terminal_is_wide_enough() -> None:
    budget = {**worker()["budget"], "lifetime": 3, "max_lifetime": 12, "max_in_window": None}
    (wide,) = rows(Board((worker(budget=budget),)), "", 0.0, 140)
    (narrow,) = rows(Board((worker(budget=budget),)), "", 0.0, 80)
    assert wide.cells[columns(140).index("RESTARTS")] == "▰▰▰▱▱▱▱▱▱▱▱▱ 3/12"
    assert narrow.cells[columns(80).index("RESTARTS")] == "3/12"


def test_on_80_columns_the_reason_of_a_failure_has_room() -> None:
    reason = "3 restarts in 5 minutes; last death: exited with code 1"
    spent = worker("worker:importer:0", shown="failed", pid=None, failure_reason=reason)
    lived = worker("worker:web:0", uptime_ms=158_000)
    failed, other = rows(Board((spent, lived)), "", 0.0, 80)
    assert failed.cells[-1].startswith("3 restarts in")
    assert other.cells[columns(80).index("UPTIME")] == "2 min"


def test_workers_of_one_group_are_below_its_head_which_counts_them() -> None:
    board = Board(
        (worker("worker:web:0"), worker("worker:api:0"), worker("worker:api:1", shown="failed", pid=None))
    )
    head, failed, healthy, single = rows(board, "", 0.0)
    assert (head.cells[0], head.cells[1], head.cells[-1]) == ("▾ api", "1/2 up", "1 failed")
    assert head.members == ("worker:api:1", "worker:api:0")
    assert [failed.component_id, healthy.component_id] == ["worker:api:1", "worker:api:0"]
    assert single.component_id == "worker:web:0"
    closed = rows(board, "", 0.0, toggled={"api": False})
    assert [row.cells[0] for row in closed] == ["▸ api", "worker:web:0"]


def test_with_many_workers_a_group_without_trouble_is_closed_at_first() -> None:
    many = [worker(f"worker:api:{n}") for n in range(60)]
    assert [row.cells[0] for row in rows(Board(tuple(many)), "", 0.0)] == ["▸ api"]
    many[17] = worker("worker:api:17", shown="crashed")
    shown = rows(Board(tuple(many)), "", 0.0)
    assert [row.cells[0] for row in shown[:3]] == ["▾ api", "  worker:api:17", "  worker:api:0"]


def test_cpu_and_memory_are_those_of_the_latest_measurement() -> None:
    used = {"worker:tag:0": {"cpu_percent": 12.4, "memory_mb": 31.6}}
    (row,) = rows(Board((worker(),), usages=used), "", 0.0)
    assert row.cells[4:6] == ("12 %", "32 MB")
    (ended,) = rows(Board((worker(shown="stopped", pid=None),), usages=used), "", 0.0)
    assert ended.cells[4:6] == ("-", "-")


def test_a_rollout_under_way_is_one_line() -> None:
    web = {
        "group": "web",
        "workers": ["a", "b"],
        "replaced": ["a"],
        "problem": "",
        "steps": ["b \x1b starts"],
    }
    (line,) = rollout_lines(Board(rollouts=(web,)))
    assert line.startswith("Rollout of web: 1 of 2 replaced: b ")
    assert "\x1b" not in line


def test_a_hostile_name_cannot_steer_the_terminal() -> None:
    (row,) = rows(Board((worker(why="\x1b[2J[red]boo", shown="stopped"),)), "", 0.0)
    assert "\x1b" not in "".join(row.cells)


def test_nt_05_nt_06_the_badge_counts_unacknowledged_alerts_and_hides_at_none() -> None:
    assert badge([alert(1), alert(2, severity="warning")]) == " 2 alerts "
    assert badge([alert(1), alert(2, acknowledged_at_wall_ms=5)]) == " 1 alert "
    assert badge([alert(1, resolved_at_wall_ms=5)]) == badge([]) == ""


def test_an_alert_that_is_over_is_not_listed() -> None:
    assert [number for number, _, _ in alert_rows([alert(1), alert(2, resolved_at_wall_ms=5)])] == [1]


def test_nt_08_the_bell_is_for_what_is_critical_new_and_not_acknowledged() -> None:
    known = [alert(1)]
    assert has_new_critical([], [alert(1)])
    assert has_new_critical(known, [alert(1, occurrences=2)])
    assert not has_new_critical(known, known)
    assert not has_new_critical([], [alert(1, severity="warning")])
    assert not has_new_critical([], [alert(1, acknowledged_at_wall_ms=5)])
    assert not has_new_critical([], [alert(1, resolved_at_wall_ms=5)])


def test_the_heading_says_when_the_supervisor_does_not_answer() -> None:
    assert heading(Board(trouble="no supervisor listens")) == "not connected: no supervisor listens"
    assert heading(Board((worker(),), paused=True)) == "1 worker: 1 healthy, the system is paused"


def test_an_open_breaker_is_one_line_whose_clocks_go_on() -> None:
    waiting = {
        "name": "db",
        "why": "3 workers died within 30 s",
        "open_for_ms": 40_000,
        "held": ["a", "b"],
        "canary": None,
        "next_try_in_ms": 6_000,
    }
    trying = {**waiting, "held": ["a"], "canary": "worker:tag:\x1b[2J", "next_try_in_ms": None}
    board = Board(breakers=(waiting, trying), at=100.0)
    first, second = breaker_lines(board, 102.0)
    assert first == (
        "Breaker db open for 42 s, 2 workers held back, canary in 4 s: 3 workers died within 30 s"
    )
    assert "1 worker held back, canary worker:tag:" in second
    assert "\x1b" not in second
    assert breaker_lines(board, 999.0)[0].count("canary as soon as possible") == 1


def test_a_long_name_is_cut_inside_so_that_all_columns_fit_into_80() -> None:
    long, short = worker("worker:" + "a-very-long-name-" * 3 + "end:7"), worker("worker:web:0")
    listed = rows(Board((long, short)), "", 0.0, 80)
    assert {len(row.cells) for row in listed} == {len(columns(80))}
    name = next(row.cells[0] for row in listed if row.component_id != "worker:web:0")
    assert name.startswith("worker:a-very…")
    assert name.endswith("-end:7")
    widest = [
        max(map(len, column)) for column in zip(columns(80), *(row.cells for row in listed), strict=True)
    ]
    assert sum(widest) + 2 * len(widest) + 2 <= 80


def test_the_members_of_a_group_are_indented_below_its_head() -> None:
    listed = rows(Board((worker("worker:api:0"), worker("worker:api:1"))), "", 0.0)
    assert [row.cells[0] for row in listed] == ["▾ api", "  worker:api:0", "  worker:api:1"]


def test_the_output_is_shown_without_colours_and_with_every_other_sequence_escaped() -> None:
    """Colours were shown as escape sequences."""

    class OneLine(ControlClient):
        def get(self, path: str, timeout_s: float | None = None) -> Any:
            line = {"component_id": "w", "stream": "out", "text": r"\x1b[32mINFO\x1b[0m \x1b[2Jup"}
            return {"lines": [line], "newest": 1, "lost": 0, "run": "one"}

    assert LogFollower(OneLine(""), ("w",)).fetch() == r"out | INFO \x1b[2Jup"
