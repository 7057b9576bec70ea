"""What actors do, as entries of a history: the same in virtual time and on threads."""

from __future__ import annotations

import re
from collections.abc import Callable

from ..facts.records import DeathRecord, StreakCleared
from ..messages import Event, StatusChanged, WorkerDied
from ..messages.internal import BackoffElapsed
from .scenarios.history import Decided, StreakEnded, TimerDropped, TimerSet, Told

_names: dict[type, str] = {}


def told(at: float, event: Event, *, on_our_clock: bool = False) -> Told:
    """An event that somebody heard, from those who have the same clock or another one."""
    kind = type(event)
    name = _names.get(kind)
    if name is None:
        name = _names[kind] = re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()
    number = getattr(event, "number", None)
    if kind is StatusChanged:
        assert isinstance(event, StatusChanged)
        since = event.at if on_our_clock and event.at < at else None
        return Told(at, name, event.component_id, event.generation, event.old, event.new, number, since)
    if kind is WorkerDied:
        assert isinstance(event, WorkerDied)
        return Told(at, name, event.component_id, event.death.generation, number=number)
    worker = getattr(event, "component_id", None)
    return Told(at, name, worker, getattr(event, "generation", 0), number=number)


def decided(
    at: float, record: object, silent_s: Callable[[str], float | None]
) -> Decided | StreakEnded | None:
    """What the supervisor has written down: a decision, the end of a streak, or something else."""
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
    )


def timer_set(at: float, delay_s: float, message: BackoffElapsed) -> TimerSet:
    """A restart that is pending."""
    return TimerSet(at, message.component_id, message.generation, at + delay_s)


def timer_dropped(at: float, message: BackoffElapsed) -> TimerDropped:
    """A restart that is not pending any more."""
    return TimerDropped(at, message.component_id, message.generation)
