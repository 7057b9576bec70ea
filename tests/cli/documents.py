"""What the server sends, with everything well unless a test says otherwise."""

from __future__ import annotations

from typing import Any

STEADY = {
    "in_window": 0,
    "max_in_window": 5,
    "window_ms": 300_000,
    "lifetime": 0,
    "max_lifetime": 20,
    "consecutive": 0,
    "max_consecutive": None,
}
NO_LIMITS = {**STEADY, "max_in_window": None, "max_lifetime": None}


def worker(id_: str = "worker:tag:0", **changes: Any) -> dict[str, Any]:
    """A healthy worker, changed."""
    return {
        "component_id": id_,
        "status": "healthy",
        "shown": "healthy",
        "generation": 1,
        "pid": 4711,
        "uptime_ms": 12_300,
        "restart_count": 0,
        "streak_count": 0,
        "next_attempt_in_ms": None,
        "failure_reason": None,
        "current_job": None,
        "paused": False,
        "why": "",
        "budget": STEADY,
        "waits_for": [],
        "pause_mode": "stop",
        "pause_reason": "",
        "pause_ends_in_ms": None,
        "retried_if_changed": False,
        "why_code": None,
        **changes,
    }


def down(shown: str, **changes: Any) -> dict[str, Any]:
    """A worker without a process."""
    return worker(**{"status": "dead", "shown": shown, "pid": None, "uptime_ms": None, **changes})


def report(*workers: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The answer to `GET /workers`."""
    return {"workers": list(workers), "paused": False, "unsaved": 0, "degraded": None, **changes}


def death(**changes: Any) -> dict[str, Any]:
    """A death by an exit code."""
    return {
        "component_id": "worker:tag:0",
        "generation": 3,
        "died_at_wall_ms": 1_700_000_000_000,
        "cause": "exited",
        "exit_code": 7,
        "signal": None,
        "uptime_ms": 1500,
        "job": None,
        "action": "restart",
        "reason": "Restart #3 with 4s backoff",
        "delay_ms": 4000,
        "streak_cleared": False,
        **changes,
    }


def order(**changes: Any) -> dict[str, Any]:
    """An entry of the audit."""
    return {
        "at_wall_ms": 1_700_000_000_000,
        "gateway": "control",
        "uid": 1000,
        "pid": 99,
        "claimed_user": None,
        "action": "rolling_restart",
        "target": "tag",
        "detail": "",
        "result": "done",
        "reason": "",
        **changes,
    }
