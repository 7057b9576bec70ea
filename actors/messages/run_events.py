"""Events about the runs of scheduled workers."""

from __future__ import annotations

import msgspec

from ..facts.runs import Hindrance, Trigger


class RunDue(msgspec.Struct, frozen=True):
    """A run is due; it starts at once, after its jitter, or after the run before it."""

    component_id: str
    run: int
    due_wall_ms: int
    trigger: Trigger = Trigger.CLOCK


class RunStarted(msgspec.Struct, frozen=True):
    """A run begins."""

    component_id: str
    run: int
    due_wall_ms: int
    trigger: Trigger = Trigger.CLOCK


class RunSucceeded(msgspec.Struct, frozen=True):
    """A run ended with success."""

    component_id: str
    run: int
    duration_ms: int
    attempts: int = 1


class RunFailed(msgspec.Struct, frozen=True):
    """A run ended without success, and is not tried again."""

    component_id: str
    run: int
    reason: str
    """In words."""
    duration_ms: int | None = None
    attempts: int = 0
    exit_code: int | None = None
    signal: int | None = None


class RunStopped(msgspec.Struct, frozen=True):
    """A run was ended before it was done; not a failure."""

    component_id: str
    run: int
    reason: Hindrance


class RunSkipped(msgspec.Struct, frozen=True):
    """A run is not executed because the one before it is still running."""

    component_id: str
    run: int
    due_wall_ms: int
    reason: Hindrance
    times: int = 1
    """How many in a row."""


class RunMissed(msgspec.Struct, frozen=True):
    """A run, or several in a row, could not be executed when it was due."""

    component_id: str
    run: int
    due_wall_ms: int
    """The first due time."""
    last_due_wall_ms: int
    reason: Hindrance
    times: int = 1
    """How many in a row."""


class RunOverdue(msgspec.Struct, frozen=True):
    """A scheduled worker has not succeeded for two periods."""

    component_id: str
    since_wall_ms: int
    """Its last success, or since when it is scheduled."""
    ever: bool = True
    """Whether it has succeeded before."""


class ScheduleChanged(msgspec.Struct, frozen=True):
    """A scheduled worker has another schedule from now on, or none."""

    component_id: str
    plan: str
    """The new schedule in words; empty if there is none."""


RunEvent = (
    RunDue
    | RunStarted
    | RunSucceeded
    | RunFailed
    | RunStopped
    | RunSkipped
    | RunMissed
    | RunOverdue
    | ScheduleChanged
)
