"""Pure: alerts as episodes. One is opened once, counted, escalated once, resolved once.

    event ──▶ opened ──again──▶ counted ──worse, or not acknowledged──▶ escalated ──healthy──▶ resolved

An episode belongs to a (worker, kind), or to a queue with toxic jobs. A worker that recovers
briefly and dies again stays in the same episode; only sustained health ends it. So a crash loop is
one alert, not a hundred.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

import msgspec
from msgspec.structs import replace

from ..facts.alert import Alert, Happening, Kind, Severity
from ..facts.usage import excess_words
from ..messages import (
    ActorReplaced,
    Event,
    FailureLifted,
    JobConvicted,
    ResourceEased,
    ResourceViolated,
    ResourceWarned,
    StoodDown,
    StoreDegraded,
    StoreRecovered,
    WorkerDied,
    WorkerFailed,
    WorkerRemoved,
    WorkerReset,
    WorkerStopped,
    WorkerUnkillable,
)

MOST_RESOLVED = 100
"""How many resolved alerts are kept; active ones always are."""

BELL_REST_S = 30.0
"""The shortest time between two rings of the bell."""


class Change(msgspec.Struct, frozen=True):
    """What happened to an alert, and the alert afterwards."""

    happening: Happening
    alert: Alert


class Book(msgspec.Struct, frozen=True):
    """All active alerts and the latest resolved ones."""

    alerts: Mapping[int, Alert] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    next_id: int = 1
    exceeded: Mapping[int, frozenset[str]] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    """The resources over their bound, by the id of the alert."""

    def active(self, component_id: str | None, kind: Kind, queue: str | None = None) -> Alert | None:
        """The active episode of this kind, for a worker or a queue."""
        key = (component_id, kind, queue)
        return next((each for each in self.alerts.values() if each.is_active and each.key == key), None)

    def of(self, component_id: str | None) -> list[Alert]:
        """The active episodes of a worker."""
        return [each for each in self.alerts.values() if each.is_active and each.component_id == component_id]


class Step(msgspec.Struct, frozen=True):
    """The book afterwards, and what changed in it."""

    book: Book
    changes: tuple[Change, ...] = ()


def recalled(alerts: Iterable[Alert]) -> Book:
    """The book as the previous run left it."""
    known = {alert.id: alert for alert in alerts}
    return Book(MappingProxyType(known), max(known, default=0) + 1)


def begun(book: Book, component_ids: Collection[str], now_wall_ms: int) -> Step:
    """A new run resolves the alerts about the previous run itself and about workers that were removed.

    Toxic jobs are in the store, so the alert of a queue outlasts the run.
    """
    over = [
        each
        for each in book.alerts.values()
        if each.is_active and each.queue is None and each.component_id not in component_ids
    ]
    return _resolve(book, over, now_wall_ms)


# ── What happens ─────────────────────────────────────────────────────────────────────────


def heard(book: Book, event: Event, now_wall_ms: int, recent: int = 0) -> Step:
    """Apply an event; `recent` is the number of recent deaths of the worker, including this one."""
    match event:
        case WorkerDied():
            return _died(book, event, now_wall_ms, recent)
        case WorkerFailed(component_id=id_, reason=reason):
            text = "auto-restart disabled: it was given up"
            return _raise(
                book, id_, Kind.CRASHED, Severity.CRITICAL, text, reason, now_wall_ms, restart_available=True
            )
        case WorkerUnkillable(component_id=id_, pid=pid):
            text = f"pid {pid} survived SIGKILL"
            return _raise(book, id_, Kind.UNKILLABLE, Severity.CRITICAL, text, "", now_wall_ms)
        case ResourceWarned(component_id=id_) | ResourceViolated(component_id=id_):
            return _used_too_much(book, event, now_wall_ms)
        case ResourceEased(component_id=id_):
            return _uses_less(book, event, now_wall_ms)
        case JobConvicted():
            return _convicted(book, event, now_wall_ms)
        case StoreDegraded(reason=reason, unsaved=unsaved):
            text = f"store unavailable; {unsaved} records wait in memory"
            return _raise(book, None, Kind.STORE, Severity.WARNING, text, reason, now_wall_ms)
        case StoodDown(reason=reason):
            text = "another supervisor took over the store"
            return _raise(book, None, Kind.STORE, Severity.CRITICAL, text, reason, now_wall_ms)
        case StoreRecovered():
            return _resolve(book, [book.active(None, Kind.STORE)], now_wall_ms)
        case ActorReplaced(actor=actor, error=error):
            text = f"internal error in {actor}; the actor was restarted"
            return _raise(book, None, Kind.INTERNAL, Severity.WARNING, text, error, now_wall_ms)
        case (
            WorkerStopped(component_id=id_)
            | WorkerReset(component_id=id_)
            | WorkerRemoved(component_id=id_)
            | FailureLifted(component_id=id_)
        ):
            return _resolve(book, book.of(id_), now_wall_ms)
        case _:
            return Step(book)


def settled(book: Book, component_id: str, now_wall_ms: int) -> Step:
    """The worker has been healthy for long enough: resolve all of its alerts."""
    return _resolve(book, book.of(component_id), now_wall_ms)


def queues_seen(book: Book, toxic: Mapping[str, int], looked_at_wall_ms: int, now_wall_ms: int) -> Step:
    """Resolve the alerts of queues that have no toxic jobs left.

    A query that began before the latest conviction may have missed it, so that alert stays.
    """
    over = [
        each
        for each in book.alerts.values()
        if each.is_active and each.kind is Kind.TOXIC and each.last_at_wall_ms < looked_at_wall_ms
    ]
    well = [each for each in over if not toxic.get(each.queue or "")]
    return _resolve(book, well, now_wall_ms) if well else Step(book)


def acknowledged(book: Book, alert_id: int, by: str, now_wall_ms: int) -> Step:
    """An operator takes care of it: it is silent from now on, and stays until it is resolved."""
    alert = book.alerts.get(alert_id)
    if alert is None or not alert.is_loud:
        return Step(book)
    alert = replace(alert, acknowledged_at_wall_ms=now_wall_ms, acknowledged_by=by)
    return _changed(book, Change(Happening.ACKNOWLEDGED, alert))


def overdue(book: Book, alert_id: int, now_wall_ms: int) -> Step:
    """It was not acknowledged in time: escalate it, once."""
    alert = book.alerts.get(alert_id)
    if alert is None or not alert.is_loud or alert.escalated:
        return Step(book)
    alert = replace(alert, escalated=True, severity=Severity.CRITICAL, last_at_wall_ms=now_wall_ms)
    return _changed(book, Change(Happening.ESCALATED, alert))


def _died(book: Book, died: WorkerDied, now_wall_ms: int, recent: int) -> Step:
    id_, death = died.component_id, died.death
    # A resource alert becomes part of the crash.
    absorbed = _resolve(book, [book.active(id_, Kind.RESOURCE)], now_wall_ms)
    if died.is_finished:
        return absorbed
    raised = _raise(
        absorbed.book,
        id_,
        Kind.CRASHED,
        Severity.CRITICAL,
        f"crashed: {death}",
        died.reason,
        now_wall_ms,
        recent_count=recent,
        work_item=death.job,
        assignee_cleared=None if death.job is None else False,
        # If the worker is given up, WorkerFailed follows.
        restart_available=died.action in ("notify_only", "none"),
    )
    return Step(raised.book, (*absorbed.changes, *raised.changes))


def _convicted(book: Book, convicted: JobConvicted, now_wall_ms: int) -> Step:
    job, queue = convicted.job_id, convicted.queue
    return _raise(
        book,
        None,
        Kind.TOXIC,
        Severity.WARNING,
        f"job {job} of {queue} is toxic: {convicted.crash_count} workers died on it",
        f"the last one was {convicted.component_id}; it is set aside until an operator retries or drops it",
        now_wall_ms,
        queue=queue,
        work_item=job,
    )


def _used_too_much(book: Book, event: ResourceWarned | ResourceViolated, now_wall_ms: int) -> Step:
    if isinstance(event, ResourceViolated) and event.fatal:
        return Step(book)  # the death that follows raises the alert
    bound = "warning threshold" if isinstance(event, ResourceWarned) else "limit"
    text = excess_words(event.resource, event.used, event.limit, bound)
    raised = _raise(book, event.component_id, Kind.RESOURCE, Severity.WARNING, text, "", now_wall_ms)
    alert = raised.changes[-1].alert
    exceeded = {**book.exceeded, alert.id: book.exceeded.get(alert.id, frozenset()) | {event.resource}}
    return replace(raised, book=replace(raised.book, exceeded=MappingProxyType(exceeded)))


def _uses_less(book: Book, event: ResourceEased, now_wall_ms: int) -> Step:
    """Resolve the alert unless another resource is still over its bound."""
    alert = book.active(event.component_id, Kind.RESOURCE)
    if alert is None:
        return Step(book)
    left = book.exceeded.get(alert.id, frozenset()) - {event.resource}
    if left:
        return Step(replace(book, exceeded=MappingProxyType({**book.exceeded, alert.id: left})))
    return _resolve(book, [alert], now_wall_ms)


def _raise(
    book: Book,
    component_id: str | None,
    kind: Kind,
    severity: Severity,
    message: str,
    reason: str,
    now_wall_ms: int,
    **details: object,
) -> Step:
    queue = details.get("queue")
    known = book.active(component_id, kind, queue if isinstance(queue, str) else None)
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
    return _changed(replace(book, next_id=book.next_id + 1), Change(Happening.OPENED, alert))


def _repeat(
    book: Book,
    known: Alert,
    severity: Severity,
    message: str,
    reason: str,
    now_wall_ms: int,
    details: Mapping[str, object],
) -> Step:
    again = replace(
        known,
        severity=max(severity, known.severity),
        message=message,
        reason=reason,
        last_at_wall_ms=now_wall_ms,
        # The death of a worker that is given up has been counted already.
        occurrences=known.occurrences + ("recent_count" in details or known.kind is not Kind.CRASHED),
        **details,
    )
    worse = again.severity > known.severity or (again.restart_available and not known.restart_available)
    if worse and not known.escalated:
        # Worse than what was acknowledged: notify again.
        again = replace(again, escalated=True, acknowledged_at_wall_ms=None, acknowledged_by=None)
        return _changed(book, Change(Happening.ESCALATED, again))
    return _changed(book, Change(Happening.REPEATED, again))


def _resolve(book: Book, alerts: Iterable[Alert | None], now_wall_ms: int) -> Step:
    over = [
        Change(Happening.RESOLVED, replace(each, resolved_at_wall_ms=now_wall_ms))
        for each in alerts
        if each is not None
    ]
    return _changed(book, *over)


def _changed(book: Book, *changes: Change) -> Step:
    alerts = {**book.alerts, **{change.alert.id: change.alert for change in changes}}
    exceeded = {id_: names for id_, names in book.exceeded.items() if alerts[id_].is_active}
    pruned = MappingProxyType(_pruned(alerts))
    return Step(replace(book, alerts=pruned, exceeded=MappingProxyType(exceeded)), changes)


def _pruned(alerts: dict[int, Alert]) -> dict[int, Alert]:
    """Without the oldest resolved ones; active alerts always stay."""
    over = [each.id for each in alerts.values() if not each.is_active]
    for id_ in sorted(over)[: max(0, len(alerts) - MOST_RESOLVED)]:
        del alerts[id_]
    return alerts


# ── How people see them ──────────────────────────────────────────────────────────────────


def badge(alerts: Iterable[Alert]) -> int:
    """How many alerts need attention; 0 hides the badge."""
    return sum(alert.is_loud for alert in alerts)


def ordered(alerts: Iterable[Alert]) -> list[Alert]:
    """By severity, then unacknowledged first, then newest first."""
    return sorted(
        alerts, key=lambda a: (-a.severity, a.acknowledged_at_wall_ms is not None, -a.last_at_wall_ms, -a.id)
    )


def rings(change: Change, last_ring_s: float | None, now_s: float) -> bool:
    """Whether the bell rings: for new critical alerts, at most once per `BELL_REST_S`."""
    if change.happening not in (Happening.OPENED, Happening.ESCALATED, Happening.REPEATED):
        return False
    if change.alert.severity is not Severity.CRITICAL or not change.alert.is_loud:
        return False
    return last_ring_s is None or now_s - last_ring_s >= BELL_REST_S
