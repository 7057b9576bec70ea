"""Replies to a host."""

from __future__ import annotations

import msgspec

from ..deaths.death import Exit, Job
from ..facts.alert import Alert
from ..facts.health_status import ShownStatus, Status
from ..facts.runs import Run
from ..spec.policies.schedule import WorkerKind
from ..spec.spec_changes import Changes
from ..spec.worker_spec import PauseMode


class Done(msgspec.Struct, frozen=True):
    """The command was carried out, or is under way."""

    already: bool = False
    """There was nothing to do."""


class Refused(msgspec.Struct, frozen=True):
    """The command was refused, and why; `unknown` is the id that does not exist, if that is the reason."""

    reason: str
    unknown: str | None = None
    paused: str | None = None
    """The paused worker, if a pause is the reason; empty: the whole system is paused."""


class StopResult(msgspec.Struct, frozen=True):
    """How one worker ended when it was stopped."""

    component_id: str
    exit: Exit | None = None
    """None: there was no process to stop."""
    forced: int | None = None
    """The last signal sent; None if the request over the channel was enough."""
    gone: bool = True
    """False: the process survived SIGKILL."""
    relaunched: bool = False
    """It was started again, because another command asked for it before it had ended."""

    @property
    def killed(self) -> bool:
        """Whether it took SIGKILL."""
        return self.forced == 9


class WorkersStopped(msgspec.Struct, frozen=True):
    """All workers of the command have stopped."""

    results: tuple[StopResult, ...]


class WorkersChanged(msgspec.Struct, frozen=True):
    """What a changed set of specs did."""

    changes: Changes


class Budget(msgspec.Struct, frozen=True):
    """How much of each limit is used; None: no limit."""

    in_window: int
    max_in_window: int | None
    window_s: float
    lifetime: int
    max_lifetime: int | None
    consecutive: int
    max_consecutive: int | None
    counts_deaths: bool = False
    """Always false: both kinds of window count restarts. Stored events of older versions may have true."""
    boot_failures: int = 0
    """Restarts in a row after deaths before it was ready, counted only with `max_boot_failures`."""
    max_boot_failures: int | None = None


class ScheduleStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The schedule of a worker: what was, and what comes next."""

    plan: str
    """Such as `every 15m` or `cron '0 3 * * *' in Europe/Berlin`."""
    next_due_wall_ms: int
    next_in_s: float
    """From now until then."""
    current: Run | None = None
    """The run that waits or is running."""
    last: Run | None = None
    """The latest run that is over, or was missed or skipped."""
    succeeded_at_wall_ms: int | None = None
    overdue: bool = False
    """It has not succeeded for two periods."""


class WorkerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One worker as status views show it."""

    component_id: str
    status: Status | None
    """Its exact health; None without an incarnation."""
    shown: ShownStatus
    """The state in one word."""
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
    """Why it does not run, in words; empty while it runs."""
    budget: Budget
    waits_for: tuple[str, ...] = ()
    """Workers that must become healthy before it starts."""
    not_ready: tuple[str, ...] = ()
    """The conditions that a starting worker does not meet yet, in words, with the latest answer of each."""
    said: str = ""
    """What it last said of itself over its notify socket (STATUS=)."""
    probes: tuple[str, ...] = ()
    """The latest answers of the probe of its liveness, newest first: `tcp … failed 3 s ago: refused`."""
    start_note: str = ""
    """How its process was started, if it may be forked from a warm process: in words."""
    leaving: bool = False
    """It was removed and its process is still to end; no order can name it."""
    pause_mode: PauseMode = PauseMode.STOP
    """What a pause does to its process: `stop` ends it, `idle` lets it run and tells it to idle."""
    pause_reason: str = ""
    pause_ends_in_s: float | None = None
    retried_if_changed: bool = False
    """It is failed, and a changed version will be started automatically."""
    last_error: str = ""
    """The last line that it wrote about an error before it crashed; empty while it runs."""
    heartbeat_age_s: float | None = None
    """How long ago its current process was last heard from; None: not yet, or it sends no heartbeats."""
    why_code: str | None = None
    """The code of `why`, if it is a fixed reason: `stopping`, `stopped`, `paused`, `reset`,
    `not_started`, `not_restarted`, `finished`, `held` or `scheduled`."""
    kind: WorkerKind = WorkerKind.SERVICE
    """`once`: its process is meant to end, and the worker is `done` then; `scheduled`: by the clock."""
    schedule: ScheduleStatus | None = None
    """Its runs, if it has a schedule."""
    node: str | None = None
    """The node of the cluster that it runs on; None without a cluster."""
    epoch: int | None = None
    """The number of its assignment to the node."""


class BreakerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A breaker that is open: restarts of its workers are held back."""

    name: str
    why: str
    open_for_s: float
    held: tuple[str, ...]
    """The workers that restart when it closes."""
    canary: str | None
    """The worker that is being tried, if any."""
    next_try_in_s: float | None
    """When a canary may start, if the probe (if any) passes; None while one is being tried."""


class GroupStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A group of workers that stand and fall together."""

    name: str
    strategy: str
    members: tuple[str, ...]
    """As they were declared: names of worker tables, workers or groups."""
    workers: tuple[str, ...]
    """The workers in it and in the groups inside it."""
    used: int
    """How many restarts are used in the window."""
    max_in_window: int | None
    window_s: float
    on_exhausted: str
    given_up: str | None = None
    """Why it is down until a person restarts it, if it is."""
    because: str | None = None
    """The worker whose death was the last one."""


class RolloutStatus(msgspec.Struct, frozen=True):
    """A rollout: new processes that take over from old ones."""

    group: str
    """The workers of which table."""
    stage: str
    """`raise`, `replace`, `put_back`, `lower` or `over`."""
    workers: tuple[str, ...]
    replaced: tuple[str, ...]
    """The workers that have their new processes."""
    spares: tuple[str, ...]
    """The additional workers that exist meanwhile."""
    reason: str
    """`operator_restart`, `configuration_change` or `recycle`."""
    problem: str = ""
    """Why it is ended early; empty: it is not."""
    steps: tuple[str, ...] = ()
    """What happened so far, in words."""


class StatusReport(msgspec.Struct, frozen=True):
    """All workers, in the order of their declaration."""

    workers: tuple[WorkerStatus, ...]
    paused: bool
    unsaved: int
    """Records that are not persisted yet."""
    degraded: str | None
    """Why the store is unavailable, if it is."""
    breakers: tuple[BreakerStatus, ...] = ()
    """The open ones."""
    groups: tuple[GroupStatus, ...] = ()
    """All groups with a strategy, the enclosing ones first."""
    rollouts: tuple[RolloutStatus, ...] = ()
    """Those under way, and for each table the latest one that has ended."""


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One machine of a cluster, as the node that answers sees it."""

    name: str
    state: str
    """`up`, `cordoned`, `suspect`, `convicted`, `paroled`, `draining`, `lost` or `left`."""
    why: str
    by: str
    lease_left_s: float | None
    """How long it may run its workers if it is not heard from again; None: it has left."""
    workers: int
    is_own: bool
    """It is the one that answers; what it says of its workers is live."""
    leads: bool
    """Its coordinator places and moves workers."""
    age_s: float | None
    """How old what it says of its workers is; None: it has said nothing."""


class AlertReport(msgspec.Struct, frozen=True):
    """The active alerts and the latest resolved ones, the most severe first."""

    alerts: tuple[Alert, ...]
