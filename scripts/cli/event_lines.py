"""Pure: events of the log as lines for people."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from .words import printable

Document = dict[str, Any]

_SKIPPED = ("id", "schema_version", "at_wall_ms", "type", "component_id")


def event_line(event: Document) -> str:
    """One event: when, its number, about whom, what."""
    at = event["at_wall_ms"]
    moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at / 1000))
    whom = event.get("component_id") or "rekindle"
    words = _WORDS.get(event["type"], _plain)(event)
    return printable(f"{moment}.{at % 1000:03d}  #{event['id']}  {whom}  {words}")


def _plain(event: Document) -> str:
    """An event that we have no words for, a newer supervisor's perhaps."""
    rest = " ".join(f"{name}={value}" for name, value in event.items() if name not in _SKIPPED)
    name = event["type"].replace("_", " ")
    return f"{name}: {rest}" if rest else str(name)


def _status_changed(event: Document) -> str:
    detail = event.get("detail") or event.get("cause")
    return f"is {event['new']}" + (f": {detail}" if detail else "")


def _worker_started(event: Document) -> str:
    return f"started, pid {event['pid']}, generation {event['generation']}"


def _worker_died(event: Document) -> str:
    how = event["cause"].replace("_", " ")
    if event.get("signal") is not None:
        how = f"killed by signal {event['signal']}"
    elif event.get("exit_code") is not None:
        how = f"exited with code {event['exit_code']}"
    return f"died: {how}. {event['reason']}"


def _worker_failed(event: Document) -> str:
    return f"was given up: {event['reason']}"


def _worker_removed(_event: Document) -> str:
    return "is supervised no longer"


def _failure_lifted(event: Document) -> str:
    return f"is failed no longer: {event['reason']}"


def _worker_stopped(event: Document) -> str:
    forced = "" if event.get("forced") is None else f", by signal {event['forced']}"
    return f"was stopped{forced}"


def _worker_stopping(event: Document) -> str:
    return f"is told to end: {event['reason']}"


def _stop_step_taken(event: Document) -> str:
    return "is asked for its stacks" if event["step"] == "stacks" else f"is sent {event['step']}"


def _store_degraded(event: Document) -> str:
    return f"the store takes nothing, going on from memory: {event['reason']}"


def _store_recovered(_event: Document) -> str:
    return "the store is back"


def _events_lost(event: Document) -> str:
    return f"{event['count']} events were lost in a long outage, #{event['first_id']} to #{event['last_id']}"


_WORDS: dict[str, Callable[[Document], str]] = {
    "status_changed": _status_changed,
    "worker_started": _worker_started,
    "worker_died": _worker_died,
    "worker_failed": _worker_failed,
    "worker_removed": _worker_removed,
    "failure_lifted": _failure_lifted,
    "worker_stopping": _worker_stopping,
    "stop_step_taken": _stop_step_taken,
    "worker_stopped": _worker_stopped,
    "store_degraded": _store_degraded,
    "store_recovered": _store_recovered,
    "events_lost": _events_lost,
}
