"""Pure: events of the log as lines for people."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from .text import printable, signal_name, span

Document = dict[str, Any]

_SKIPPED = ("id", "schema_version", "at_wall_ms", "type", "component_id")


def event_line(event: Document) -> str:
    """One event: when, its number, about whom, what."""
    at = event["at_wall_ms"]
    moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at / 1000))
    whom = event.get("component_id") or "rekindle"
    words = _words(event)
    return printable(f"{moment}.{at % 1000:03d}  #{event['id']}  {whom}  {words}")


def _words(event: Document) -> str:
    try:
        return _WORDS.get(event["type"], _plain)(event)
    except (LookupError, TypeError, ValueError):  # of another version, with other fields
        return _plain(event)


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
        how = f"killed by {signal_name(event['signal'])}"
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
    forced = "" if event.get("forced") is None else f", by {signal_name(event['forced'])}"
    return f"was stopped{forced}"


def _worker_stopping(event: Document) -> str:
    return f"is told to end: {event['reason'].replace('_', ' ')}"


def _stop_step_taken(event: Document) -> str:
    return "is asked for its stacks" if event["step"] == "stacks" else f"is sent {event['step']}"


def _pause_began(event: Document) -> str:
    reason, for_ms = event.get("reason"), event.get("for_ms")
    for_ = "" if for_ms is None else f" for {span(for_ms)}"
    return f"{_whole(event)} paused{for_}" + (f": {reason}" if reason else "")


def _pause_ended(event: Document) -> str:
    return f"{_whole(event)} not paused any more"


def _whole(event: Document) -> str:
    return "is" if event.get("component_id") else "everything is"


def _alert_changed(event: Document) -> str:
    alert, happening = event["alert"], event["happening"]
    words = f"alert {alert['id']} {happening}"
    if happening == "acknowledged" and alert.get("acknowledged_by"):
        words += f" by {alert['acknowledged_by']}"
    if happening == "repeated":
        words += f", {alert['occurrences']} times now"
    return f"{words}: {alert['message']}"


def _job_requeued(event: Document) -> str:
    why = "it died" if event.get("counted", True) else "it ended"
    return f"job {event['job_id']} of {event['queue']} is pending again: {why}"


def _job_convicted(event: Document) -> str:
    return f"job {event['job_id']} of {event['queue']} is toxic: {event['crash_count']} workers died on it"


def _resource(words: str) -> Callable[[Document], str]:
    return _said(words + ": {resource} is {used:.0f}, the limit is {limit:g}")


def _resource_violated(event: Document) -> str:
    verdict = "it is killed" if event["fatal"] else f"{event['in_a_row']} in a row"
    return f"{_resource('uses too much')(event)}; {verdict}"


def _breaker_opened(event: Document) -> str:
    many = len(event["workers"])
    return f"breaker {event['breaker']} opened: {event['reason']}; {many} workers are held back"


def _breaker_closed(event: Document) -> str:
    after, many = span(event["open_for_ms"]), len(event["workers"])
    return f"breaker {event['breaker']} closed after {after}; {many} come back"


def _said(template: str) -> Callable[[Document], str]:
    """Words with fields of the event in them."""
    return lambda event: template.format_map(event)


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
    "worker_unkillable": _said("survived SIGKILL as pid {pid}; nothing is started in its place"),
    "worker_recycled": _said("gets a new process: {reason}"),
    "worker_reset": _said("has its counters cleared"),
    "pause_began": _pause_began,
    "pause_ended": _pause_ended,
    "alert_changed": _alert_changed,
    "job_requeued": _job_requeued,
    "job_convicted": _job_convicted,
    "resource_warned": _resource("uses much"),
    "resource_eased": _resource("uses less again"),
    "resource_violated": _resource_violated,
    "breaker_opened": _breaker_opened,
    "canary_started": _said("tries for all behind breaker {breaker}"),
    "breaker_closed": _breaker_closed,
    "work_released": _said("work item {work_item}: {detail}"),
    "work_release_failed": _said("work item {work_item} was not released: {reason}"),
    "actor_replaced": _said("our {actor} raised and was made anew: {error}"),
    "stood_down": _said("another supervisor took over: {reason}"),
    "gateway_lost": _said("the gateway {gateway} delivers nothing for now: {reason}"),
    "gateway_restored": _said("the gateway {gateway} delivers again: {detail}"),
}
