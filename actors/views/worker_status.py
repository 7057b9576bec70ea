"""Pure: one worker as status views show it."""

from __future__ import annotations

from ..facts.health_status import ShownStatus, Status
from ..facts.records import HealthMirrored
from ..messages import ScheduleStatus, WorkerStatus
from ..rules.restarts import budget
from ..supervision.pauses import ActivePause
from ..supervision.worker import (
    BackingOff,
    Failed,
    Idle,
    Rest,
    Stopping,
    SupervisedWorker,
    Up,
)
from .sentences.reason_words import rest_words


def worker_status(
    worker: SupervisedWorker,
    now_ms: int,
    *,
    wall_ms: int | None = None,
    pause: ActivePause | None = None,
    pause_ends_in_s: float | None = None,
    waits_for: tuple[str, ...] = (),
    held: str | None = None,
    leaving: bool = False,
) -> WorkerStatus:
    """The status of a worker."""
    phase = worker.phase
    up = phase if isinstance(phase, Up) else None
    due_ms = phase.due_ms if isinstance(phase, BackingOff) and held is None else None
    return WorkerStatus(
        component_id=worker.id,
        status=worker.status,
        shown=shown(worker),
        generation=worker.generation,
        pid=phase.pid if isinstance(phase, Up | Stopping) else None,
        uptime_s=None if up is None or up.pid is None else (now_ms - up.since_ms) / 1000,
        restart_count=worker.restarts.restart_count,
        streak_count=worker.restarts.streak_count,
        next_attempt_in_s=None if due_ms is None else max(0, due_ms - now_ms) / 1000,
        failure_reason=phase.reason if isinstance(phase, Failed) else None,
        current_job=worker.job,
        paused=pause is not None,
        why=f"waits for {', '.join(waits_for)}" if waits_for else (held or why(worker)),
        why_code=None if waits_for or held else _why_code(worker),
        last_error=_last_error(worker),
        budget=budget(worker.spec.restart, worker.restarts, now_ms),
        waits_for=waits_for,
        leaving=leaving,
        pause_mode=worker.spec.pause_mode,
        pause_reason="" if pause is None else pause.reason,
        pause_ends_in_s=pause_ends_in_s,
        retried_if_changed=is_retried_if_changed(worker),
        kind=worker.spec.kind,
        schedule=None if wall_ms is None else _schedule(worker, wall_ms),
        node=None if worker.spec.assigned is None else worker.spec.assigned.node,
        epoch=None if worker.spec.assigned is None else worker.spec.assigned.epoch,
    )


def _schedule(worker: SupervisedWorker, wall_ms: int) -> ScheduleStatus | None:
    policy, table = worker.spec.schedule, worker.timetable
    if policy is None or table is None:
        return None
    due = policy.calendar.next_after(max(table.until_ms, wall_ms))
    return ScheduleStatus(
        plan=str(policy.calendar),
        next_due_wall_ms=due,
        next_in_s=(due - wall_ms) / 1000,
        current=table.current,
        last=table.latest,
        succeeded_at_wall_ms=table.succeeded_ms,
        overdue=table.overdue,
    )


def is_retried_if_changed(worker: SupervisedWorker) -> bool:
    """Whether a changed version of a failed worker is started automatically."""
    is_known = isinstance(worker.phase, Failed) and worker.phase.version is not None
    return is_known and worker.spec.restart.clear_failed_on_change


def shown(worker: SupervisedWorker) -> ShownStatus:
    """The one word that a status table shows."""
    match worker.phase:
        case Up():
            return ShownStatus.STARTING if worker.status is Status.PENDING else ShownStatus.HEALTHY
        case BackingOff():
            return ShownStatus.CRASHED
        case Stopping():
            return ShownStatus.STOPPING
        case Failed():
            return ShownStatus.FAILED
        case Idle(rest=Rest.LEFT | Rest.HELD):
            return ShownStatus.CRASHED
        case Idle(rest=Rest.SCHEDULED):
            return ShownStatus.SCHEDULED
        case Idle(rest=Rest.DONE) if worker.spec.is_task:
            return ShownStatus.DONE
        case Idle():
            return ShownStatus.STOPPED


def why(worker: SupervisedWorker) -> str:
    """Why the worker is not running; empty while it is."""
    match worker.phase:
        case Up(delayed=error):
            return f"not started yet: {error}; tried again every second" if error else ""
        case BackingOff(record=record):
            return record.reason
        case Stopping():
            return "stopping"
        case Failed(reason=reason):
            return reason
        case Idle(rest=rest, why=text):
            return text or rest_words(rest)


def _last_error(worker: SupervisedWorker) -> str:
    match worker.phase:
        case BackingOff(record=record) if record.bundle is not None:
            return record.bundle.last_error
        case _:
            return ""


def _why_code(worker: SupervisedWorker) -> str | None:
    match worker.phase:
        case Stopping():
            return "stopping"
        case Idle(rest=Rest.GROUP as rest) | Idle(rest=rest, why=""):
            return rest.value
        case _:
            return None


def mirrored_at_rest(worker: SupervisedWorker) -> HealthMirrored:
    """The health that views show for a worker at rest, which no monitor watches."""
    return HealthMirrored(
        component_id=worker.id,
        generation=worker.generation,
        status=ShownStatus.STOPPED,
        pid=None,
        current_job=None,
        last_heartbeat_wall_ms=None,
    )
