"""Pure: the book of alerts, and how an episode in it is opened, repeated and resolved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec
from msgspec.structs import replace

from ...facts.alert import Alert, AlertKind, Happening, Severity

MOST_RESOLVED = 100
"""How many resolved alerts are kept; active ones always are."""


class AlertChange(msgspec.Struct, frozen=True):
    """What happened to an alert, and the alert afterwards."""

    happening: Happening
    alert: Alert


Ids = Mapping[str | None, tuple[int, ...]]


class Book(msgspec.Struct, frozen=True):
    """All active alerts and the latest resolved ones."""

    alerts: Mapping[int, Alert] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    next_id: int = 1
    exceeded: Mapping[int, frozenset[str]] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    """The resources over their bound, by the id of the alert."""
    paused: frozenset[str] = frozenset()
    """The workers that are paused; the empty id stands for the whole system."""
    active_ids: Ids = msgspec.field(default_factory=lambda: MappingProxyType({}))
    """The active alerts by worker: with a thousand of them, none may be searched for at every event."""
    resolved_ids: tuple[int, ...] = ()

    def active(self, component_id: str | None, kind: AlertKind, name: str | None = None) -> Alert | None:
        """The active episode of this kind, for a worker, a queue or a breaker."""
        key = (component_id, kind, name)
        return next((each for each in self.of(component_id) if each.key == key), None)

    def of(self, component_id: str | None) -> list[Alert]:
        """The active episodes of a worker."""
        return [self.alerts[id_] for id_ in self.active_ids.get(component_id, ())]


def book_of(alerts: Iterable[Alert]) -> Book:
    """A book with these alerts."""
    known = {alert.id: alert for alert in alerts}
    active: dict[str | None, tuple[int, ...]] = {}
    for alert in known.values():
        if alert.is_active:
            active[alert.component_id] = (*active.get(alert.component_id, ()), alert.id)
    over = tuple(id_ for id_, alert in known.items() if not alert.is_active)
    return Book(
        MappingProxyType(known),
        max(known, default=0) + 1,
        active_ids=MappingProxyType(active),
        resolved_ids=over,
    )


class AlertStep(msgspec.Struct, frozen=True):
    """The book afterwards, and what changed in it."""

    book: Book
    changes: tuple[AlertChange, ...] = ()


def raised(
    book: Book,
    component_id: str | None,
    kind: AlertKind,
    severity: Severity,
    message: str,
    reason: str,
    now_wall_ms: int,
    **details: object,
) -> AlertStep:
    """Open an episode, or count it once more in the one that is open."""
    name = details.get("queue") or details.get("breaker")
    known = book.active(component_id, kind, name if isinstance(name, str) else None)
    if known is not None:
        return _repeat(book, known, severity, message, reason, now_wall_ms, details)
    alert = Alert(
        id=book.next_id,
        kind=kind,
        component_id=component_id,
        severity=severity,
        message=message,
        reason=reason,
        opened_at_wall_ms=now_wall_ms,
        last_at_wall_ms=now_wall_ms,
        **details,  # type: ignore[arg-type]
    )
    return changed(replace(book, next_id=book.next_id + 1), AlertChange(Happening.OPENED, alert))


def _repeat(
    book: Book,
    known: Alert,
    severity: Severity,
    message: str,
    reason: str,
    now_wall_ms: int,
    details: Mapping[str, object],
) -> AlertStep:
    again = replace(
        known,
        severity=max(severity, known.severity),
        message=message,
        reason=reason,
        last_at_wall_ms=now_wall_ms,
        # The death of a worker that is given up has been counted already.
        occurrences=known.occurrences + ("recent_count" in details or known.kind is not AlertKind.CRASHED),
        **details,
    )
    worse = again.severity > known.severity or (again.restart_available and not known.restart_available)
    if worse and not known.escalated:
        # Worse than what was acknowledged: notify again.
        again = replace(again, escalated=True, acknowledged_at_wall_ms=None, acknowledged_by=None)
        return changed(book, AlertChange(Happening.ESCALATED, again))
    return changed(book, AlertChange(Happening.REPEATED, again))


def resolved(book: Book, alerts: Iterable[Alert | None], now_wall_ms: int) -> AlertStep:
    """Close these episodes; None stands for an episode that is not open."""
    over = [
        AlertChange(Happening.RESOLVED, replace(each, resolved_at_wall_ms=now_wall_ms))
        for each in alerts
        if each is not None
    ]
    return changed(book, *over)


def changed(book: Book, *changes: AlertChange) -> AlertStep:
    """Put changed alerts into the book, and drop the oldest resolved ones."""
    if not changes:
        return AlertStep(book)
    alerts = {**book.alerts, **{change.alert.id: change.alert for change in changes}}
    over = (*book.resolved_ids, *(each.alert.id for each in changes if not each.alert.is_active))
    dropped = set(sorted(over)[: max(0, len(alerts) - MOST_RESOLVED)])
    for id_ in dropped:
        del alerts[id_]
    exceeded = {id_: names for id_, names in book.exceeded.items() if id_ in alerts and alerts[id_].is_active}
    step = replace(
        book,
        alerts=MappingProxyType(alerts),
        exceeded=MappingProxyType(exceeded),
        active_ids=_active_after(book.active_ids, changes),
        resolved_ids=tuple(id_ for id_ in over if id_ not in dropped),
    )
    return AlertStep(step, changes)


def _active_after(before: Ids, changes: Iterable[AlertChange]) -> Ids:
    """The active alerts by worker, after these changes."""
    moved = [each.alert for each in changes if each.happening in (Happening.OPENED, Happening.RESOLVED)]
    if not moved:
        return before
    after = {**before}
    for alert in moved:
        others = [id_ for id_ in after.pop(alert.component_id, ()) if id_ != alert.id]
        ids = (*others, alert.id) if alert.is_active else tuple(others)
        if ids:
            after[alert.component_id] = ids
    return MappingProxyType(after)
