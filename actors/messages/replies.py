"""What a host is answered."""

from __future__ import annotations

import msgspec

from ..deaths.death import Exit, Job
from ..facts.alert import Alert
from ..facts.health_status import ShownStatus, Status
from ..spec.spec_changes import Changes


class Done(msgspec.Struct, frozen=True):
    """The command was carried out, or is under way."""

    already: bool = False
    """There was nothing to do: it was so before."""


class Refused(msgspec.Struct, frozen=True):
    """The command was declined, and why; `unknown` is the id that nobody has, if that is it."""

    reason: str
    unknown: str | None = None
    paused: str | None = None
    """Whose pause is in the way, if one is: a worker's, or with an empty text that of everything."""


class StopResult(msgspec.Struct, frozen=True):
    """How one worker ended when it was stopped."""

    component_id: str
    exit: Exit | None = None
    """None: there was no process to stop."""
    forced: int | None = None
    """The signal that was needed; None if asking was enough."""
    gone: bool = True
    """False: the process survived SIGKILL."""
    relaunched: bool = False
    """Somebody wanted it back before it had ended: it was started again."""

    @property
    def killed(self) -> bool:
        """Whether it took SIGKILL."""
        return self.forced == 9


class WorkersStopped(msgspec.Struct, frozen=True):
    """All the workers that were to stop have stopped."""

    results: tuple[StopResult, ...]


class WorkersChanged(msgspec.Struct, frozen=True):
    """What a changed set of specs led to."""

    changes: Changes


class Budget(msgspec.Struct, frozen=True):
    """How much of each limit is used up; a limit of None is no limit."""

    in_window: int
    max_in_window: int | None
    window_s: float
    lifetime: int
    max_lifetime: int | None
    consecutive: int
    max_consecutive: int | None


class WorkerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One worker as people see it."""

    component_id: str
    status: Status | None
    """The exact internal word; None when there is no incarnation to speak of."""
    shown: ShownStatus
    """The state in one word, for people."""
    generation: int
    pid: int | None
    uptime_s: float | None
    restart_count: int
    streak_count: int
    next_attempt_in_s: float | None
    failure_reason: str | None
    current_job: Job | None
    paused: bool
    why: str
    """Why it is not running, if it is not; words for people."""
    budget: Budget
    waits_for: tuple[str, ...] = ()
    """Workers that are not healthy yet, which its start waits for."""
    pause_reason: str = ""
    pause_ends_in_s: float | None = None
    retried_if_changed: bool = False
    """It is failed, and a changed version of it will be tried by itself."""
    why_code: str | None = None
    """The code for `why` where that is a fixed reason: `stopping`, `stopped`, `paused`, `reset`,
    `not_started`, `not_restarted`, `finished` or `held`."""


class BreakerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A breaker that is open: restarts of its workers are held back."""

    name: str
    why: str
    open_for_s: float
    held: tuple[str, ...]
    """The workers that come back when it closes."""
    canary: str | None
    """Who tries for all now; None: nobody does."""
    next_try_in_s: float | None
    """When somebody may try, if the probe (where there is one) passes by then; None while one does."""


class StatusReport(msgspec.Struct, frozen=True):
    """All workers, in the order in which they were declared."""

    workers: tuple[WorkerStatus, ...]
    paused: bool
    unsaved: int
    """Records that the store could not take yet."""
    degraded: str | None
    """What is wrong with the store, if anything."""
    breakers: tuple[BreakerStatus, ...] = ()
    """Those that are open."""


class AlertReport(msgspec.Struct, frozen=True):
    """The alerts that are not over, and the latest of those that are; the worst first."""

    alerts: tuple[Alert, ...]
