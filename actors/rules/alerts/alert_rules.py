"""Pure: alerts as episodes. One is opened once, counted, escalated once, resolved once.

    event ──▶ opened ──again──▶ counted ──worse, or not acknowledged──▶ escalated ──healthy──▶ resolved

An episode belongs to a (worker, kind), to a queue with toxic jobs, or to an open breaker. A worker
that recovers briefly and dies again stays in the same episode; only sustained health ends it. So a
crash loop is one alert, not a hundred.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from msgspec.structs import replace

from ...deaths.death import Action, Cause
from ...facts.alert import Alert, AlertKind, Happening, Severity
from ...facts.usage import excess_words
from ...messages import (
    ActorReplaced,
    BreakerClosed,
    BreakerOpened,
    Event,
    FailureLifted,
    JobConvicted,
    LogInterrupted,
    LogResumed,
    PauseBegan,
    PauseEnded,
    ResourceEased,
    ResourceViolated,
    ResourceWarned,
    RunOverdue,
    ScheduleChanged,
    StartsHindered,
    StartsResumed,
    StoodDown,
    StoreDegraded,
    StoreRecovered,
    WorkerDied,
    WorkerFailed,
    WorkerRemoved,
    WorkerReset,
    WorkerStopped,
    WorkerUnkillable,
    WorkReleased,
)
from ..restarts import window_words
from .alert_book import AlertChange, AlertStep, Book, book_of, changed, raised, resolved
from .cluster_alerts import heard_of_cluster

EVERYTHING = ""
"""Stands among ids for the whole system."""

PAUSED = "paused before it recovered"


def recalled(alerts: Iterable[Alert], paused: Iterable[str] = ()) -> Book:
    """The book as the previous run left it."""
    return replace(book_of(alerts), paused=frozenset(paused))


def begun(
    book: Book, component_ids: Collection[str], now_wall_ms: int, open_breakers: Collection[str] = ()
) -> AlertStep:
    """A new run resolves the alerts about the previous run itself and about workers that were removed.

    Toxic jobs and open breakers are in the store, so their alerts outlast the run.
    """
    over = [
        each
        for each in book.alerts.values()
        if each.is_active
        and each.queue is None
        and each.component_id not in component_ids
        and each.breaker not in open_breakers
    ]
    return resolved(book, over, now_wall_ms)


# ── What happens ─────────────────────────────────────────────────────────────────────────


def heard(book: Book, event: Event, now_wall_ms: int, recent: int = 0) -> AlertStep:
    """Apply an event; `recent` is the number of recent deaths of the worker, including this one."""
    match event:
        case WorkerDied():
            return _died(book, event, now_wall_ms, recent)
        case WorkerFailed(component_id=id_, reason=reason):
            text = "auto-restart disabled: it was given up"
            return raised(
                book,
                id_,
                AlertKind.CRASHED,
                Severity.CRITICAL,
                text,
                reason,
                now_wall_ms,
                restart_available=True,
            )
        case WorkerUnkillable(component_id=id_, pid=pid):
            text = f"pid {pid} survived SIGKILL"
            return raised(book, id_, AlertKind.UNKILLABLE, Severity.CRITICAL, text, "", now_wall_ms)
        case ResourceWarned(component_id=id_) | ResourceViolated(component_id=id_):
            return _used_too_much(book, event, now_wall_ms)
        case ResourceEased(component_id=id_):
            return _uses_less(book, event, now_wall_ms)
        case RunOverdue():
            return _overdue(book, event, now_wall_ms)
        case ScheduleChanged(component_id=id_):
            return resolved(book, [book.active(id_, AlertKind.OVERDUE)], now_wall_ms)
        case WorkReleased():
            return _released(book, event)
        case JobConvicted():
            return _convicted(book, event, now_wall_ms)
        case BreakerOpened() | BreakerClosed():
            return _breaker_changed(book, event, now_wall_ms)
        case PauseBegan(component_id=id_):
            return AlertStep(replace(book, paused=book.paused | {id_ or EVERYTHING}))
        case PauseEnded(component_id=id_):
            return AlertStep(replace(book, paused=book.paused - {id_ or EVERYTHING}))
        case WorkerStopped(component_id=id_) if not book.paused.isdisjoint({id_, EVERYTHING}):
            return _stopped_by_pause(book, id_, now_wall_ms)
        case WorkerStopped(component_id=id_):
            return settled(book, id_, now_wall_ms)
        case (
            WorkerReset(component_id=id_) | WorkerRemoved(component_id=id_) | FailureLifted(component_id=id_)
        ):
            return resolved(book, book.of(id_), now_wall_ms)
        case _:
            return _heard_of_system(book, event, now_wall_ms)


def _heard_of_system(book: Book, event: Event, now_wall_ms: int) -> AlertStep:
    """Apply an event about the supervisor itself."""
    match event:
        case StoreDegraded(reason=reason):
            text = "cannot write to the database; supervision continues from memory"
            return raised(book, None, AlertKind.STORE, Severity.WARNING, text, reason, now_wall_ms)
        case StoodDown(reason=reason):
            text = "another supervisor took over the store"
            return raised(book, None, AlertKind.STORE, Severity.CRITICAL, text, reason, now_wall_ms)
        case StoreRecovered():
            return resolved(book, [book.active(None, AlertKind.STORE)], now_wall_ms)
        case LogInterrupted(file=file, reason=reason):
            text = f"the log file {file} cannot be written"
            return raised(book, None, AlertKind.LOG, Severity.WARNING, text, reason, now_wall_ms)
        case LogResumed(interrupted=0):
            return resolved(book, [book.active(None, AlertKind.LOG)], now_wall_ms)
        case StartsHindered(component_id=id_, reason=reason):
            text = f"the machine has no room for more processes; {id_} waits to be started"
            return raised(book, None, AlertKind.SCARCITY, Severity.CRITICAL, text, reason, now_wall_ms)
        case StartsResumed():
            return resolved(book, [book.active(None, AlertKind.SCARCITY)], now_wall_ms)
        case ActorReplaced(actor=actor, error=error):
            text = f"internal error in {actor}; the actor was restarted"
            return raised(book, None, AlertKind.INTERNAL, Severity.WARNING, text, error, now_wall_ms)
        case _:
            return heard_of_cluster(book, event, now_wall_ms)


def settled(book: Book, component_id: str, now_wall_ms: int) -> AlertStep:
    """The worker has been healthy for long enough, or was stopped: resolve its alerts."""
    over = [each for each in book.of(component_id) if each.kind is not AlertKind.OVERDUE]
    return resolved(book, over, now_wall_ms)


def queues_seen(book: Book, toxic: Mapping[str, int], looked_at_wall_ms: int, now_wall_ms: int) -> AlertStep:
    """Resolve the alerts of queues that have no toxic jobs left.

    A query that began before the latest conviction may have missed it, so that alert stays.
    """
    over = [
        each
        for each in book.alerts.values()
        if each.is_active and each.kind is AlertKind.TOXIC and each.last_at_wall_ms < looked_at_wall_ms
    ]
    well = [each for each in over if not toxic.get(each.queue or "")]
    return resolved(book, well, now_wall_ms) if well else AlertStep(book)


def acknowledged(book: Book, alert_id: int, by: str, now_wall_ms: int) -> AlertStep:
    """An operator takes care of it: it is silent from now on, and stays until it is resolved."""
    alert = book.alerts.get(alert_id)
    if alert is None or not alert.is_loud:
        return AlertStep(book)
    alert = replace(alert, acknowledged_at_wall_ms=now_wall_ms, acknowledged_by=by)
    return changed(book, AlertChange(Happening.ACKNOWLEDGED, alert))


def overdue(book: Book, alert_id: int, now_wall_ms: int) -> AlertStep:
    """It was not acknowledged in time: escalate it, once."""
    alert = book.alerts.get(alert_id)
    if alert is None or not alert.is_loud or alert.escalated:
        return AlertStep(book)
    alert = replace(alert, escalated=True, severity=Severity.CRITICAL, last_at_wall_ms=now_wall_ms)
    return changed(book, AlertChange(Happening.ESCALATED, alert))


def _died(book: Book, died: WorkerDied, now_wall_ms: int, recent: int) -> AlertStep:
    id_, death = died.component_id, died.death
    # A resource alert becomes part of the crash.
    absorbed = resolved(book, [book.active(id_, AlertKind.RESOURCE)], now_wall_ms)
    if died.done:
        return resolved(book, book.of(id_), now_wall_ms)
    if died.is_finished or death.cause is Cause.SUPERVISOR_LOST:
        return absorbed
    if died.action == Action.HELD:  # the alert of the breaker covers it
        return absorbed
    if died.action == Action.RESTART_UNCOUNTED and death.was_ready:  # its exit code asks for a restart
        return absorbed
    # A crash that was restarted needs no attention at once; if it is given up, WorkerFailed follows.
    is_restarted = died.action in (Action.RESTART, Action.RESTART_UNCOUNTED, Action.MARK_FAILED)
    disabled = "auto-restart disabled; " if died.exhausted and died.action == Action.NOTIFY_ONLY else ""
    opened = raised(
        absorbed.book,
        id_,
        AlertKind.CRASHED,
        Severity.WARNING if is_restarted else Severity.CRITICAL,
        f"{disabled}crashed: {death.summary}",
        died.reason,
        now_wall_ms,
        recent_count=recent,
        work_item=death.job,
        assignee_cleared=None if death.job is None else False,
        restart_available=died.action in ("notify_only", "none"),
    )
    return AlertStep(opened.book, (*absorbed.changes, *opened.changes))


def _overdue(book: Book, event: RunOverdue, now_wall_ms: int) -> AlertStep:
    """Health does not end it, however long a run lasts; a success does, or another schedule."""
    ago = window_words(max(0, round((now_wall_ms - event.since_wall_ms) / 1000)))
    reason = f"its last success was {ago} ago" if event.ever else f"it has never succeeded, for {ago}"
    text = "has not succeeded for two periods of its schedule"
    return raised(book, event.component_id, AlertKind.OVERDUE, Severity.CRITICAL, text, reason, now_wall_ms)


def _released(book: Book, released: WorkReleased) -> AlertStep:
    """The work of the worker that crashed was released."""
    alert = book.active(released.component_id, AlertKind.CRASHED)
    if alert is None or not released.cleared or alert.assignee_cleared:
        return AlertStep(book)
    return changed(book, AlertChange(Happening.AMENDED, replace(alert, assignee_cleared=True)))


def _breaker_changed(book: Book, event: BreakerOpened | BreakerClosed, now_wall_ms: int) -> AlertStep:
    """One outage is one alert; the crashes that opened the breaker are part of it."""
    name = event.breaker
    if isinstance(event, BreakerClosed):
        return resolved(book, [book.active(None, AlertKind.BREAKER, name)], now_wall_ms)
    covered = [book.active(id_, AlertKind.CRASHED) for id_ in event.workers]
    absorbed = resolved(book, [each for each in covered if each and not each.restart_available], now_wall_ms)
    many = len(event.workers)
    text = f"{name} is away, {many} worker{'' if many == 1 else 's'} held"
    opened = raised(
        absorbed.book,
        None,
        AlertKind.BREAKER,
        Severity.CRITICAL,
        text,
        event.reason,
        now_wall_ms,
        breaker=name,
    )
    return AlertStep(opened.book, (*absorbed.changes, *opened.changes))


def _stopped_by_pause(book: Book, id_: str, now_wall_ms: int) -> AlertStep:
    """A pause ends the process and not the cause of its crashes: that alert stays and says so."""
    crash = book.active(id_, AlertKind.CRASHED)
    lasting = (AlertKind.CRASHED, AlertKind.OVERDUE)
    over = resolved(book, [each for each in book.of(id_) if each.kind not in lasting], now_wall_ms)
    if crash is None:
        return over
    kept = replace(crash, reason=PAUSED, last_at_wall_ms=now_wall_ms)
    stays = changed(over.book, AlertChange(Happening.REPEATED, kept))
    return AlertStep(stays.book, (*over.changes, *stays.changes))


def _convicted(book: Book, convicted: JobConvicted, now_wall_ms: int) -> AlertStep:
    job, queue = convicted.job_id, convicted.queue
    return raised(
        book,
        None,
        AlertKind.TOXIC,
        Severity.WARNING,
        f"job {job} of {queue} is toxic: {convicted.crash_count} workers died on it",
        f"the last one was {convicted.component_id}; it is set aside until an operator retries or drops it",
        now_wall_ms,
        queue=queue,
        work_item=job,
    )


def _used_too_much(book: Book, event: ResourceWarned | ResourceViolated, now_wall_ms: int) -> AlertStep:
    if isinstance(event, ResourceViolated) and event.fatal:
        return AlertStep(book)  # the death that follows raises the alert
    bound = "warning threshold" if isinstance(event, ResourceWarned) else "limit"
    text = excess_words(event.resource, event.used, event.limit, bound)
    opened = raised(book, event.component_id, AlertKind.RESOURCE, Severity.WARNING, text, "", now_wall_ms)
    alert = opened.changes[-1].alert
    exceeded = {**book.exceeded, alert.id: book.exceeded.get(alert.id, frozenset()) | {event.resource}}
    return replace(opened, book=replace(opened.book, exceeded=MappingProxyType(exceeded)))


def _uses_less(book: Book, event: ResourceEased, now_wall_ms: int) -> AlertStep:
    """Resolve the alert unless another resource is still over its bound."""
    alert = book.active(event.component_id, AlertKind.RESOURCE)
    if alert is None:
        return AlertStep(book)
    left = book.exceeded.get(alert.id, frozenset()) - {event.resource}
    if left:
        return AlertStep(replace(book, exceeded=MappingProxyType({**book.exceeded, alert.id: left})))
    return resolved(book, [alert], now_wall_ms)


# ── How people see them ──────────────────────────────────────────────────────────────────


def badge(alerts: Iterable[Alert]) -> int:
    """How many alerts need attention; 0 hides the badge."""
    return sum(alert.is_loud for alert in alerts)


def ordered(alerts: Iterable[Alert]) -> list[Alert]:
    """By severity, then unacknowledged first, then newest first."""
    return sorted(
        alerts, key=lambda a: (-a.severity, a.acknowledged_at_wall_ms is not None, -a.last_at_wall_ms, -a.id)
    )
