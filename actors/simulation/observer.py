"""Turns what actors do into entries of a history, in virtual time and on threads alike."""

from __future__ import annotations

import re
from collections.abc import Callable

from ..facts.records import DeathRecord, StreakCleared
from ..facts.runs import Run
from ..messages import (
    AlertChanged,
    BreakerClosed,
    Event,
    JobCancelled,
    JobConvicted,
    JobRequeued,
    JobTimedOut,
    RolloutAdvanced,
    RolloutEnded,
    RolloutStarted,
    StatusChanged,
    WorkerDied,
    WorkerStopping,
)
from ..messages.internal.to_supervisor import BackoffElapsed
from .scenarios.history import Announced, Decided, EventPublished, StreakEnded, TimerDropped, TimerSet
from .scenarios.run_entries import RunRecorded

_names: dict[type, str] = {}


def announced(at: float, event: object) -> Announced:
    """The entry of an event that an actor sends to be persisted and published."""
    name, worker = _name(type(event)), getattr(event, "component_id", None)
    if isinstance(event, StatusChanged):
        return Announced(at, name, worker, event.generation, event.old, event.new)
    if isinstance(event, WorkerDied):
        return Announced(at, name, worker, event.death.generation)
    if isinstance(event, AlertChanged):
        alert = event.alert
        return Announced(
            at,
            name,
            alert.component_id,
            alert.id,
            old=str(alert.kind),
            new=str(event.happening),
            about=alert.breaker or alert.queue,
            severity=int(alert.severity),
            occurrences=alert.occurrences,
        )
    if isinstance(event, WorkerStopping):
        return Announced(at, name, worker, event.generation, new=event.reason, about=event.because)
    if isinstance(event, RolloutAdvanced):
        return Announced(at, name, None, 0, event.group, event.step, ",".join(event.workers))
    if isinstance(event, RolloutStarted):
        return Announced(at, name, None, 0, ",".join(event.workers), event.group, ",".join(event.spares))
    if isinstance(event, RolloutEnded):
        return Announced(at, name, None, 0, event.group, event.problem or None, ",".join(event.replaced))
    if isinstance(event, BreakerClosed):
        return Announced(at, name, about=event.breaker, lasted_s=event.open_for_s)
    about = getattr(event, "breaker", None)
    if isinstance(event, JobRequeued | JobConvicted | JobCancelled | JobTimedOut):
        about = str(event.job_id)
    return Announced(at, name, worker, getattr(event, "generation", 0), about=about)


def _name(kind: type) -> str:
    name = _names.get(kind)
    if name is None:
        name = _names[kind] = re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()
    return name


def event_entry(at: float, event: Event, *, on_our_clock: bool = False) -> EventPublished:
    """The entry of a published event; with `on_our_clock` its time is comparable with the history."""
    kind = type(event)
    name = _name(kind)
    number = getattr(event, "number", None)
    if kind is StatusChanged:
        assert isinstance(event, StatusChanged)
        since = event.at if on_our_clock and event.at < at else None
        return EventPublished(
            at, name, event.component_id, event.generation, event.old, event.new, number, since=since
        )
    if kind is WorkerDied:
        assert isinstance(event, WorkerDied)
        return EventPublished(at, name, event.component_id, event.death.generation, number=number)
    worker = getattr(event, "component_id", None)
    about = getattr(event, "breaker", None)
    return EventPublished(at, name, worker, getattr(event, "generation", 0), number=number, about=about)


def decided(
    at: float, record: object, silent_s: Callable[[str], float | None], died_at: float | None = None
) -> Decided | StreakEnded | None:
    """The entry of a persisted record: a decision or the end of a streak; None for other records."""
    if isinstance(record, StreakCleared):
        return StreakEnded(at, record.component_id)
    if not isinstance(record, DeathRecord):
        return None
    return Decided(
        at,
        record.component_id,
        record.generation,
        record.cause,
        record.exit_code,
        record.signal,
        record.action,
        record.delay_ms,
        record.streak_cleared,
        silent_s(record.component_id),
        record.reason,
        died_at if died_at is not None and died_at < at else None,
        record.bundle is None or record.bundle.was_ready,
        record.uptime_ms,
    )


def run_recorded(at: float, run: Run, wall_ms: int) -> RunRecorded:
    """The entry of the state of a run."""
    return RunRecorded(
        at,
        run.component_id,
        run.number,
        run.state.value,
        None if run.reason is None else run.reason.value,
        run.trigger.value,
        run.due_wall_ms,
        run.last_due_wall_ms or run.due_wall_ms,
        run.times,
        wall_ms,
        run.ended_at_wall_ms,
    )


def timer_set(at: float, delay_s: float, message: BackoffElapsed) -> TimerSet:
    """The entry of a restart that is now pending."""
    return TimerSet(at, message.component_id, message.generation, at + delay_s)


def timer_dropped(at: float, message: BackoffElapsed) -> TimerDropped:
    """The entry of a pending restart that was cancelled."""
    return TimerDropped(at, message.component_id, message.generation)
