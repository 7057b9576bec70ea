"""Deaths, orders and outcomes, as a person reads them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.cli.documents import death, order

from rekindle.cli.render.change_text import change_lines
from rekindle.cli.render.listings import (
    audit_lines,
    cause,
    history_lines,
    pause_line,
    resume_line,
    stop_line,
)

NOW = 1_700_000_000_000


def test_each_death_is_shown_with_time_cause_uptime_decision_and_delay() -> None:
    given_up = death(action="mark_failed", delay_ms=0, reason="5 restarts in 5 minutes")
    heading, first, second = history_lines([given_up, death()], NOW + 65_000)
    assert heading.split() == ["WHEN", "AT", "GEN", "CAUSE", "UPTIME", "DECISION", "DELAY", "WHY"]
    assert first.startswith("1 min 5 s ago  2023-11-1")
    assert first.endswith("3    exited with code 7  1.5 s   given up  -      5 restarts in 5 minutes")
    assert second.endswith("restart   4 s    Restart #3 with 4s backoff")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cause": "signalled", "exit_code": None, "signal": 11}, "killed by SIGSEGV"),
        ({"cause": "unknown", "exit_code": None}, "exit status unknown"),
        ({"cause": "spawn_failed", "exit_code": None}, "spawn failed"),
        (
            {"cause": "heartbeat_lost", "exit_code": None, "signal": 9},
            "heartbeat lost, killed by SIGKILL",
        ),
    ],
)
def test_a_cause_tells_the_exit_code_or_the_signal(changes: dict[str, Any], said: str) -> None:
    assert cause(death(**changes)) == said


def test_the_lines_of_a_refusal_stand_in_one_line_of_the_audit() -> None:
    entry = order(result="refused", reason="nothing was changed: a.toml:2: odd\r\n  a.toml:3: odder")
    assert audit_lines([entry], NOW)[1].endswith("nothing was changed: a.toml:2: odd a.toml:3: odder")


def test_an_order_is_shown_with_its_author_action_and_result() -> None:
    refused = order(
        claimed_user="ann\x1b",
        action="pause",
        target="",
        detail='{"reason":"x"}',
        result="refused",
        reason="no",
    )
    heading, first, second = audit_lines([refused, order(uid=None)], NOW, user_name=lambda uid: f"user{uid}")
    assert heading.split() == ["WHEN", "AT", "WHO", "ORDER", "TARGET", "RESULT", "DETAIL"]
    assert re.split(r"\s{2,}", first)[2:] == [
        r"user1000 for ann\x1b",
        "pause",
        "everything",
        "refused",
        '{"reason":"x"}; no',
    ]
    assert re.split(r"\s{2,}", second)[2:] == ["?", "rolling restart", "tag", "done"]


def test_a_reload_tells_each_kind_of_change() -> None:
    detail = {
        "added": ["a", "b"],
        "removed": ["c"],
        "adjusted": ["d"],
        "unchanged": ["e"],
        "lifted": ["e"],
        "after_a_restart_of_the_supervisor": ["database"],
    }
    assert change_lines(detail) == [
        "a, b are added.",
        "c is removed.",
        "d is adjusted, without a restart.",
        "e is no longer failed: its version changed, so it is started again.",
        "Takes effect when the supervisor restarts: database.",
    ]
    assert change_lines({"unchanged": ["e"]}) == ["Nothing changed."]


def test_a_change_that_waits_is_not_reported_as_a_restart() -> None:
    detail = {
        "restarted": ["up", "spent", "lost", "held", "down", "crashed"],
        "stays_failed": ["spent", "lost"],
        "when_resumed": ["held"],
        "when_started": ["down"],
        "when_restarted": ["crashed"],
    }
    assert change_lines(detail) == [
        "up is restarted.",
        "spent, lost are changed; they stay failed until you run: rekindle restart spent lost",
        "held is changed; the change takes effect when it is resumed.",
        "down is changed; the change takes effect when it is started.",
        "crashed is changed; the change takes effect when it is restarted.",
    ]


UNTIL = "until you start it or restart the supervisor; to keep it stopped: rekindle pause w"


@pytest.mark.parametrize(
    ("detail", "said"),
    [
        ({"exit": {"code": 0, "signal": None}, "forced": None}, "w is stopped: exited with code 0."),
        ({"exit": {"code": None, "signal": 9}, "forced": 9}, "w is stopped: killed by SIGKILL."),
        (
            {"exit": {"code": 0, "signal": None}, "forced": 15},
            "w is stopped: exited with code 0 after SIGTERM.",
        ),
        (
            {"exit": None, "forced": None},
            f"w was not running; it stays stopped {UNTIL}",
        ),
    ],
)
def test_a_stop_tells_how_the_worker_ended(detail: dict[str, Any], said: str) -> None:
    assert stop_line("w", {"gone": True, **detail}) == said


def test_a_process_that_survived_sigkill_is_not_called_stopped() -> None:
    assert "survived SIGKILL" in stop_line("w", {"exit": None, "forced": 9, "gone": False})


def test_a_pause_tells_whom_for_how_long_and_why() -> None:
    nothing: dict[str, list[str]] = {"stopped": [], "idle": []}
    whole = "The system is paused until it is resumed; "
    assert pause_line([], "", None, nothing) == f"{whole}no process was running."
    one_each = {"stopped": ["a"], "idle": ["b"]}
    told = '1 process is being stopped, 1 process is kept and idle (pause_mode = "idle").'
    assert pause_line([], "", None, one_each) == whole + told
    stopped = {"stopped": ["w"], "idle": []}
    brief = "w is paused for 30 min (new disk); its process is being stopped."
    assert pause_line(["w"], "new disk", 1800.0, stopped) == brief
    idle = {"stopped": [], "idle": ["w"]}
    runs_on = 'w is paused until it is resumed; its process keeps running and idles (pause_mode = "idle").'
    assert pause_line(["w"], "", None, idle) == runs_on


def test_the_end_of_a_pause_tells_who_is_still_paused() -> None:
    assert resume_line([]) == "The system is resumed."
    assert "worker:tag:0" in resume_line(["worker:tag:0"])
