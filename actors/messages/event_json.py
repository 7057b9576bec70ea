"""Pure: events as JSON, in the form that the store, the gateways and the command line share.

An event has a `type` (its class in snake_case), a component id, and a payload: its other fields as
a JSON object. Durations are whole milliseconds (`delay_s` becomes `delay_ms`), enums are their
values. `document` puts a numbered event on one line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any, get_args

import msgspec

from ..deaths.death import Death
from ..facts.alert import Severity
from ..facts.records import EventRecord
from . import AlertChanged, Budget, Event, StatusChanged, WorkerDied, WorkerStarted, WorkerStopped
from .shapes import field_names, has_fields

_encode = msgspec.json.Encoder(enc_hook=str).encode


@cache
def _words(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def event_type(kind: type[object]) -> str:
    """`worker_died` for `WorkerDied`."""
    return _words(kind.__name__)


def numbered(number: int, at_wall_ms: int, event: Event) -> EventRecord:
    """The event as a record with this number."""
    return EventRecord(
        id=number,
        at_wall_ms=at_wall_ms,
        type=event_type(type(event)),
        component_id=getattr(event, "component_id", None),
        payload=_json(_payload(event)),
    )


def unnumbered(event: Event) -> str:
    """The event as JSON, without the number and the time that a record has."""
    head = {"type": event_type(type(event)), "component_id": getattr(event, "component_id", None)}
    return _json({**head, **_payload(event)})


def _payload(event: Event) -> Mapping[str, object]:
    special = _SPECIAL.get(type(event))
    payload: Mapping[str, object] = _plain(event) if special is None else special(event)
    return payload


def document(record: EventRecord, **added: str) -> str:
    """The event on one line of JSON: its head, what the caller adds, then its payload's fields."""
    head = (
        f'{{"id":{record.id},"schema_version":{record.schema_version},"at_wall_ms":{record.at_wall_ms},'
        f'"type":"{record.type}","component_id":{_json(record.component_id)}'
    )
    head += "".join(f',"{name}":{_json(value)}' for name, value in added.items())
    rest = record.payload.strip()
    return f"{head},{rest[1:]}" if len(rest) > 2 else f"{head}}}"


def event_of(record: EventRecord) -> Event | None:
    """The event of a record; None if another version wrote it differently.

    Times on the monotonic clock are 0, and a status that changed has no death: neither is recorded.
    """
    kind = _EVENTS.get(record.type)
    if kind is None:
        return None
    try:
        fields = {**msgspec.json.decode(record.payload), "component_id": record.component_id}
        return msgspec.convert(_restored(kind, fields), kind)
    except (LookupError, TypeError, ValueError):
        return None


def _restored(kind: type[Event], given: dict[str, Any]) -> dict[str, Any]:
    """The fields of an event, as its class names them."""
    found = {
        name: given[sent] if sent == name else _seconds(given[sent])
        for name, sent in _fields(kind)
        if sent in given
    }
    if kind is StatusChanged:
        return {**found, "at": 0.0}
    if kind is WorkerStopped:
        return {**found, "exit": _exit(given)}
    if kind is AlertChanged:
        severity = Severity[given["alert"]["severity"].upper()]
        alert = {**given["alert"], "severity": severity, "component_id": given["component_id"]}
        return {**found, "alert": alert}
    if kind is WorkerDied:
        budget = given.get("budget")
        known = {name: given[name] for name in Death.__struct_fields__ if name in given}
        found |= {"death": {**known, "exit": _exit(given)}}
        found |= {"budget": budget and {**budget, "window_s": _seconds(budget["window_ms"])}}
    return found


def _exit(given: dict[str, Any]) -> dict[str, Any]:
    return {"code": given.get("exit_code"), "signal": given.get("signal")}


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def _json(value: object) -> str:
    try:
        return _encode(value).decode()
    except UnicodeEncodeError:  # half a surrogate pair, for example in the name of a job
        return json.dumps(msgspec.to_builtins(value, enc_hook=str, str_keys=True), separators=(",", ":"))


def _status_changed(event: Any) -> Mapping[str, object]:
    changed: StatusChanged = event
    recover = changed.recover_for_s
    return {
        "generation": changed.generation,
        "old": changed.old,
        "new": changed.new,
        "cause": None if changed.death is None else changed.death.cause,
        "detail": changed.detail,
        "misses": changed.misses,
        "recover_for_ms": None if recover is None else round(recover * 1000),
    }


def _worker_started(event: Any) -> Mapping[str, object]:
    started: WorkerStarted = event
    note = {"note": started.note} if started.note else {}
    return {"generation": started.generation, "pid": started.pid, **note}


def _worker_died(event: Any) -> Mapping[str, object]:
    died: WorkerDied = event
    death = died.death
    return {
        "generation": death.generation,
        "pid": death.pid,
        "cause": death.cause,
        "exit_code": death.exit.code,
        "signal": death.exit.signal,
        "detail": death.detail,
        "uptime_ms": death.uptime_ms,
        "healthy_for_ms": death.healthy_for_ms,
        "job": death.job,
        "action": died.action,
        "reason": died.reason,
        "delay_ms": round(died.delay_s * 1000),
        "restart_count": died.restart_count,
        "streak_count": died.streak_count,
        "budget": None if died.budget is None else _budget(died.budget),
        "finding": died.finding,
        "confidence": died.confidence,
        "exhausted": died.exhausted,
        "last_error": died.last_error,
        "done": died.done,
    }


def _budget(budget: Budget) -> Mapping[str, object]:
    return {
        "in_window": budget.in_window,
        "max_in_window": budget.max_in_window,
        "window_ms": round(budget.window_s * 1000),
        "lifetime": budget.lifetime,
        "max_lifetime": budget.max_lifetime,
        "consecutive": budget.consecutive,
        "max_consecutive": budget.max_consecutive,
        "counts_deaths": budget.counts_deaths,
    }


def _worker_stopped(event: Any) -> Mapping[str, object]:
    stopped: WorkerStopped = event
    return {
        "generation": stopped.generation,
        "exit_code": stopped.exit.code,
        "signal": stopped.exit.signal,
        "forced": stopped.forced,
    }


def _plain(value: Any) -> Any:
    """The fields of a message, without its component."""
    return {
        sent: _milliseconds(getattr(value, name)) if sent != name else _value(getattr(value, name))
        for name, sent in _fields(type(value))  # type: ignore[arg-type, unused-ignore]
        if name != "component_id"
    }


def _value(value: Any) -> Any:
    if isinstance(value, Severity):  # an IntEnum only for comparison
        return value.word
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (tuple, list)):
        return [_value(each) for each in value]
    if has_fields(type(value)):
        return _plain(value)
    return value


@cache
def _fields(kind: type[Any]) -> tuple[tuple[str, str], ...]:
    names = field_names(kind)
    return tuple((name, f"{name[:-2]}_ms" if name.endswith("_s") else name) for name in names)


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)


_SPECIAL: dict[type[object], Callable[[Any], Mapping[str, object]]] = {
    StatusChanged: _status_changed,
    WorkerStarted: _worker_started,
    WorkerDied: _worker_died,
    WorkerStopped: _worker_stopped,
}

_EVENTS: dict[str, type[Event]] = {event_type(kind): kind for kind in get_args(Event)}
