"""Pure: what an event of the log says about a worker, in sentences; a death and its decision are two.

What is told twice is said once: a change to `dead` by the death that follows it, being given up
by the decision, the next occurrence of an alert by the death that it counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from rekindle.worker.plain_text import span

from ..deaths.death import Cause, Exit, signal_name
from ..facts.records import DeathRecord, EventRecord, UsageNoted
from ..supervision.worker import StopReason
from .reason_words import stop_reason_words

Fields = Mapping[str, Any]
Sentence = tuple[str, str]
"""Of which kind it is, and what it says."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a timeline."""

    at_wall_ms: int
    kind: str
    """start, health, lost, death, decision, failed, stop, pause, reset, recycle, job, resource,
    sample, alert, breaker, store, gap or other."""
    text: str
    generation: int | None = None
    event_id: int | None = None
    """The number in the log; None for what has none: a sample, a death from the history."""


def entries_of(record: EventRecord) -> tuple[Entry, ...]:
    """What an event says, in the order in which it happened; nothing if others say it."""
    fields: Fields = msgspec.json.decode(record.payload)
    everybody = "the whole system: " if record.component_id is None else ""
    return tuple(
        Entry(
            at_wall_ms=record.at_wall_ms,
            kind=kind,
            text=f"{everybody}{text}" if kind == "pause" else text,
            generation=fields.get("generation"),
            event_id=record.id,
        )
        for kind, text in _said(record.type, fields)
    )


def _said(type_: str, fields: Fields) -> list[Sentence]:
    try:
        return _WORDS[type_](fields)
    except (KeyError, TypeError):  # of another version, which has other words or other fields
        plain = [f"{name} {value}" for name, value in fields.items() if isinstance(value, str | int | float)]
        return [("other", ": ".join(filter(None, (type_.replace("_", " "), ", ".join(plain)))))]


def entries_of_death(death: DeathRecord) -> tuple[Entry, ...]:
    """What a row of the history says of a death whose event is not kept any more."""
    fields = {
        "cause": death.cause.value,
        "exit_code": death.exit_code,
        "signal": death.signal,
        "uptime_ms": death.uptime_ms,
        "job": death.job,
        "action": death.action.value,
        "reason": death.reason,
        "delay_ms": death.delay_ms,
    }
    return tuple(
        Entry(at_wall_ms=death.died_at_wall_ms, kind=kind, text=text, generation=death.generation)
        for kind, text in _died(fields)
    )


_TELLING = frozenset({"exception", "segmentation_fault", "out_of_memory", "out_of_memory_suspected"})
"""What says more than the code or the signal does."""

# ── deaths and decisions ─────────────────────────────────────────────────────────────────


def _died(given: Fields) -> list[Sentence]:
    how = str(Exit(given.get("exit_code"), given.get("signal")))
    cause = given["cause"]
    if cause not in (Cause.EXITED, Cause.SIGNALLED, Cause.UNKNOWN):
        why = cause.replace("_", " ") + (f" ({given['detail']})" if given.get("detail") else "")
        known = given.get("exit_code") is not None or given.get("signal") is not None
        how = f"{why}, {how}" if known else why
    elif given.get("finding") in _TELLING:
        sure = "" if given.get("confidence") == "certain" else f", {given.get('confidence')}"
        how = f"{how} ({given['finding'].replace('_', ' ')}{sure})"
    job = "" if given.get("job") is None else f"; it was at job {given['job']}"
    died = f"died after {span(given['uptime_ms'])}: {how}{job}"
    return [("death", died), ("failed" if given["action"] == "mark_failed" else "decision", decision(given))]


def decision(given: Fields) -> str:
    """What was decided on a death, and why: `retry in 16 s: 5th in a row; window 4 of 5; …`."""
    reason = given["reason"]
    match given["action"]:
        case "restart":
            delay = given["delay_ms"]
            when = f"retry in {span(delay)}" if delay else "retry at once"
            return f"{when}: {'; '.join(_counters(given)) or reason}"
        case "mark_failed":
            return "; ".join([f"given up: {reason}", *_limits(given)])
        case "notify_only":
            return "; ".join([f"left down: {reason}", *_limits(given)])
        case _:
            return str(reason)


def _counters(given: Fields) -> list[str]:
    streak = given.get("streak_count")
    budget = given.get("budget") or {}
    if streak is None:
        return []
    most = budget.get("max_consecutive")
    row = f"{ordinal(streak)} in a row" + ("" if most is None else f" of {most}")
    return [row, *(_limits(given) or [f"lifetime {given['restart_count']}"])]


def _limits(given: Fields) -> list[str]:
    budget = given.get("budget")
    if budget is None:
        return []
    window, lifetime = budget["max_in_window"], budget["max_lifetime"]
    return [
        *([] if window is None else [f"window {budget['in_window']} of {window}"]),
        f"lifetime {budget['lifetime']}" + ("" if lifetime is None else f" of {lifetime}"),
    ]


def ordinal(number: int) -> str:
    """`1st`, `2nd`, `11th`."""
    ending = "th" if number // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


# ── the other events ─────────────────────────────────────────────────────────────────────


def _status_changed(given: Fields) -> list[Sentence]:
    old, new, detail = given["old"], given["new"], given.get("detail")
    why = f": {detail}" if detail else ""
    match new:
        case "dead" | "failed":
            return []
        case "healthy" if old == "unhealthy":
            return [("health", f"heartbeat found, healthy again{why}")]
        case "healthy":
            return [("health", f"healthy{' again' if old == 'recovering' else ''}{why}")]
        case "unhealthy" if given.get("misses"):
            return [("lost", f"heartbeat lost, {given['misses']} missed{why}")]
        case "recovering" if given.get("recover_for_ms") is not None:
            return [("lost", f"recovering, for up to {span(given['recover_for_ms'])}{why}")]
        case _:
            return [("lost" if new in ("unhealthy", "recovering") else "health", f"{new}{why}")]


def _started(given: Fields) -> list[Sentence]:
    return [("start", f"started as generation {given['generation']}, pid {given['pid']}")]


def _stopping(given: Fields) -> list[Sentence]:
    if given["reason"] == StopReason.RECYCLE:  # `worker_recycled` gives the reason
        return []
    return [("stop", f"told to end: {stop_reason_words(given['reason'])}")]


def _step(given: Fields) -> list[Sentence]:
    asked = "asked for its stacks" if given["step"] == "stacks" else f"sent {given['step']}"
    return [("stop", asked)]


def _stopped(given: Fields) -> list[Sentence]:
    forced = given.get("forced")
    how = "" if forced is None else f", after {signal_name(forced)}"
    return [("stop", f"stopped on request: {Exit(given.get('exit_code'), given.get('signal'))}{how}")]


def _paused(given: Fields) -> list[Sentence]:
    lasts = "" if given.get("for_ms") is None else f" for {span(given['for_ms'])}"
    return [("pause", f"paused{lasts}" + (f": {given['reason']}" if given.get("reason") else ""))]


def _resource(said: str) -> Callable[[Fields], list[Sentence]]:
    def words(given: Fields) -> list[Sentence]:
        name = given["resource"].replace("_", " ").replace(" mb", " in MB")
        end = "; it is killed" if given.get("fatal") else ""
        return [("resource", f"{said}: {name} is {given['used']:.0f}, the limit is {given['limit']:g}{end}")]

    return words


def entry_of_usage(noted: UsageNoted) -> Entry:
    """What a worker used."""
    usage, peak = noted.usage, noted.peak_memory_mb
    cpu = "" if usage.cpu_percent is None else f", {usage.cpu_percent:.0f} % CPU"
    threads = f"{usage.threads} thread" + ("" if usage.threads == 1 else "s")
    most = ": the most so far" if usage.memory_mb >= peak else f"; at most {peak:.0f} MB so far"
    text = f"{usage.memory_mb:.0f} MB{cpu}, {threads}{most}"
    return Entry(at_wall_ms=noted.at_wall_ms, kind="sample", text=text, generation=noted.generation)


def _requeued(given: Fields) -> list[Sentence]:
    crashes = f", {given['crash_count']} crashes so far" if given.get("counted") else ""
    return [("job", f"its job {given['job_id']} of {given['queue']} is pending again{crashes}")]


def _convicted(given: Fields) -> list[Sentence]:
    many = given["crash_count"]
    return [("job", f"its job {given['job_id']} of {given['queue']} is toxic: {many} workers died on it")]


def _alert(given: Fields) -> list[Sentence]:
    alert, happening = given["alert"], given["happening"]
    if happening == "repeated":
        return []
    by = f" by {alert['acknowledged_by']}" if happening == "acknowledged" else ""
    return [("alert", f"alert {alert['id']} {happening}{by}: {alert['message']}")]


def _breaker_closed(given: Fields) -> list[Sentence]:
    lasted = span(given.get("open_for_ms") or 0)
    return [("breaker", f"breaker {given['breaker']} closed after {lasted}: all come back")]


def _lost(given: Fields) -> list[Sentence]:
    return [("gap", f"{given['count']} events were lost in a long outage of the store")]


def _plainly(kind: str, template: str) -> Callable[[Fields], list[Sentence]]:
    return lambda given: [(kind, template.format_map(given))]


_WORDS: dict[str, Callable[[Fields], list[Sentence]]] = {
    "status_changed": _status_changed,
    "worker_started": _started,
    "worker_died": _died,
    "worker_failed": lambda given: [("failed", f"given up: {given['reason']}")],
    "worker_stopping": _stopping,
    "stop_step_taken": _step,
    "worker_stopped": _stopped,
    "worker_unkillable": _plainly("stop", "survived SIGKILL as pid {pid}; nothing starts in its place"),
    "worker_recycled": _plainly("recycle", "gets a new process: {reason}"),
    "worker_reset": _plainly("reset", "counters and failure cleared"),
    "worker_removed": _plainly("reset", "supervised no longer"),
    "failure_lifted": _plainly("reset", "failed no longer, counters cleared: {reason}"),
    "pause_began": _paused,
    "pause_ended": _plainly("pause", "not paused any more"),
    "resource_warned": _resource("uses much"),
    "resource_eased": _resource("uses less again"),
    "resource_violated": _resource("uses too much"),
    "job_requeued": _requeued,
    "job_convicted": _convicted,
    "work_released": _plainly("job", "work item {work_item} released: {detail}"),
    "work_release_failed": _plainly("job", "work item {work_item} was not released: {reason}"),
    "alert_changed": _alert,
    "breaker_opened": _plainly("breaker", "breaker {breaker} opened, restarts are held back: {reason}"),
    "canary_started": _plainly("breaker", "tries for all whom breaker {breaker} holds back"),
    "breaker_closed": _breaker_closed,
    "store_degraded": _plainly("store", "the store takes nothing, going on from memory: {reason}"),
    "store_recovered": _plainly("store", "the store is back"),
    "stood_down": _plainly("store", "another supervisor took the store over: {reason}"),
    "events_lost": _lost,
}
