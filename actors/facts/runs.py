"""The runs of a scheduled worker, as they are stored and shown.

A run is one time at which the worker is due: it is executed, or the reason why it is not is recorded.
Due times in a row that were missed for the same reason are one row with their number.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class RunState(StrEnum):
    """What became of a run."""

    WAITING = "waiting"
    """Due, and not started yet: for its jitter, or for the run before it."""
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"
    """Ended before it was done, because the worker was stopped, paused or replaced."""
    LOST = "lost"
    """It was running or waiting when its supervisor ended without notice."""
    SKIPPED = "skipped"
    """Not executed because an earlier run was still running."""
    MISSED = "missed"
    """Not executed because the worker or its supervisor was not able to."""


class Hindrance(StrEnum):
    """Why a run was not executed, or was ended early."""

    SUPERVISOR_DOWN = "supervisor_down"
    SUPERVISOR_LOST = "supervisor_lost"
    SHUTDOWN = "shutdown"
    OVERLAP = "overlap"
    REPLACED = "replaced"
    PAUSED = "paused"
    STOPPED = "stopped"
    GROUP = "group_given_up"
    LATE = "late"
    """The supervisor was suspended, or the clock was set forward."""
    TIMEOUT = "timeout"
    CHANGED = "configuration_change"


class Trigger(StrEnum):
    """What made a run due."""

    CLOCK = "clock"
    CATCH_UP = "catch_up"
    """Runs were missed, and the policy wants one in their place."""
    OPERATOR = "operator"


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run, or several missed ones in a row."""

    component_id: str
    number: int
    """Counts the rows of one worker."""
    state: RunState
    trigger: Trigger = Trigger.CLOCK
    due_wall_ms: int
    last_due_wall_ms: int | None = None
    """The last due time, if the row stands for several."""
    times: int = 1
    """How many due times the row stands for; at least, if that are very many."""
    started_at_wall_ms: int | None = None
    ended_at_wall_ms: int | None = None
    attempts: int = 0
    """How many processes were started for it."""
    exit_code: int | None = None
    signal: int | None = None
    reason: Hindrance | None = None
    detail: str = ""
    """How it ended, in words."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more becomes of it."""
        return self.state not in (RunState.WAITING, RunState.RUNNING)

    @property
    def duration_ms(self) -> int | None:
        """How long it took; None if it was not executed or is not over."""
        if self.started_at_wall_ms is None or self.ended_at_wall_ms is None:
            return None
        return max(0, self.ended_at_wall_ms - self.started_at_wall_ms)


class RunKept(msgspec.Struct, frozen=True):
    """The current state of a run; a later record of the same number replaces it."""

    run: Run

    @property
    def component_id(self) -> str:
        """Whose run it is."""
        return self.run.component_id
