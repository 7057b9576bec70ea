"""Pure: whether the arguments of a command have the right types, and what is wrong with one that has not.

A host may construct a command from anything. A wrong value is refused before it reaches the state or
the store: in the caller's thread by `System`, and by the actor itself for a command that it is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from reprlib import Repr

from ..facts.audit_entry import AuditEntry
from ..spec.policies.stop_policy import Urgency
from ..spec.worker_spec import WorkerSpec
from .commands import AcknowledgeAlert, HostCommand, ReportAlerts
from .event_json import event_of, numbered
from .events import is_event
from .shapes import field_names

_short = Repr()
_short.maxstring = _short.maxother = 80


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_tuple_of(kind: type[object]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, tuple | list) and all(isinstance(each, kind) for each in value)


def _optional(check: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or check(value)


_RIGHT: dict[str, tuple[Callable[[object], bool], str]] = {
    "ids": (_optional(_is_tuple_of(str)), "worker ids (str)"),
    "component_id": (_is_text, "the id of a worker (str)"),
    "reason": (_is_text, "text (str)"),
    "name": (_is_text, "the name of a table of workers (str)"),
    "surge": (_optional(_is_count), "a number from 1, or None"),
    "for_s": (_optional(_is_number), "a number of seconds, or None"),
    "spec": (lambda value: isinstance(value, WorkerSpec), "a WorkerSpec"),
    "specs": (_is_tuple_of(WorkerSpec), "a tuple of WorkerSpec"),
    "versions": (lambda value: isinstance(value, Mapping), "a mapping"),
    "urgency": (lambda value: isinstance(value, Urgency), "an Urgency"),
    "alert_id": (lambda value: isinstance(value, int), "the number of an alert (int)"),
    "by": (_is_text, "the name of a person (str)"),
}
"""By the name of the field; the receiver of the reply is not checked, since a failed `tell` harms nothing."""


def wrong_argument(command: HostCommand | AcknowledgeAlert | ReportAlerts) -> str | None:
    """A sentence about the first argument that has the wrong type; None if all are right."""
    for name in field_names(type(command)):
        is_right, expected = _RIGHT.get(name, (None, ""))
        value = getattr(command, name)
        if is_right is not None and not is_right(value):
            return f"{name} must be {expected}, not {_short.repr(value)}"
    return None


def wrong_event(event: object) -> str | None:
    """Why this cannot be announced as an event; None if it can."""
    if not is_event(event):
        return (
            "an event must be of a type of rekindle.actors.messages, such as GatewayLost,"
            f" not {_short.repr(event)}: a host publishes events of its own types itself"
        )
    try:
        fits = event_of(numbered(0, 0, event)) is not None
    except (ArithmeticError, AttributeError, TypeError, ValueError):
        fits = False
    return None if fits else f"a field of this event has the wrong type: {_short.repr(event)}"


def wrong_entry(entry: object) -> str | None:
    """Why this cannot be an entry of the audit log; None if it can."""
    if isinstance(entry, AuditEntry):
        return None
    return f"an order must be an AuditEntry, not {_short.repr(entry)}"
