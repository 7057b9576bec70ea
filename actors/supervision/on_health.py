"""Pure: a worker as the former run left it, and what follows from reports of its health and job."""

from __future__ import annotations

from msgspec.structs import replace

from ..deaths.death import Job
from ..facts.health_status import Status
from ..facts.records import RememberedWorker, RestartReset, StreakCleared
from ..messages.internal.to_supervisor import HealthSustained
from ..rules.restarts import DEFAULT_FAILURE, RestartState, cleared_streak
from ..spec.worker_spec import WorkerSpec
from .after_death import held_work
from .restart_wait import is_up
from .worker import (
    CancelTimers,
    Failed,
    KeepRecord,
    ReportFailed,
    Schedule,
    SupervisedWorker,
    WorkerStep,
    World,
)


def remembered(spec: WorkerSpec, known: RememberedWorker, world: World) -> WorkerStep:
    """A worker as the former run left it: counters, failure, and a delay that is not over.

    A task runs again with each supervisor, so nothing of its former execution holds it back.
    """
    if spec.is_task:
        return _anew(spec, known, world)

    def moved(wall_ms: int) -> int:
        # Wall time becomes a point on our own timeline; a stamp from the future counts as now.
        return world.now_ms - max(0, world.wall_ms - wall_ms)

    last = known.last_restart_wall_ms
    # A reset clears the last restart; the death that it followed stays, and its delay means nothing now.
    due = None if last is None else known.restart_due_wall_ms
    longest_ms = round(spec.restart.max_delay_s * 1000)
    worker = SupervisedWorker(
        spec,
        generation=known.last_generation,
        # However the clock was set meanwhile, nothing waits longer than the policy's longest delay.
        not_before_ms=None if due is None else world.now_ms + min(due - world.wall_ms, longest_ms),
        restarts=RestartState(
            restart_count=known.restart_count,
            streak_count=known.streak_count,
            last_restart_ms=None if last is None else moved(last),
            deaths_ms=tuple(moved(at) for at in known.recent_deaths_wall_ms),
        ),
    )
    if known.failed_at_wall_ms is not None:
        phase = Failed(known.failure_reason or DEFAULT_FAILURE, known.failed_fingerprint)
        return WorkerStep(replace(worker, phase=phase, status=Status.FAILED), (ReportFailed(),))
    return WorkerStep(worker)


def _anew(spec: WorkerSpec, known: RememberedWorker, world: World) -> WorkerStep:
    worker = SupervisedWorker(spec, generation=known.last_generation)
    counted = known.restart_count or known.streak_count or known.failed_at_wall_ms is not None
    clear = (KeepRecord(RestartReset(spec.id, world.wall_ms)),) if counted else ()
    return WorkerStep(worker, clear)


def readmitted(spec: WorkerSpec, former: SupervisedWorker) -> WorkerStep:
    """A worker that was removed and is added again: its counters and its failure belong to the id."""
    worker = SupervisedWorker(
        spec, generation=former.generation, restarts=former.restarts, timetable=former.timetable
    )
    if isinstance(former.phase, Failed):
        return WorkerStep(replace(worker, phase=former.phase, status=Status.FAILED), (ReportFailed(),))
    return WorkerStep(worker)


def health_changed(worker: SupervisedWorker, generation: int, status: Status, ago_ms: int = 0) -> WorkerStep:
    """A change of a living worker, some time ago: only sustained health ever clears the streak."""
    if not is_up(worker, generation):
        return WorkerStep(worker)
    worker = replace(worker, status=status)
    after = worker.spec.restart.reset_after_healthy_s
    if status is Status.HEALTHY and after is not None and worker.restarts.streak_count:
        message = HealthSustained(worker.id, generation)
        return WorkerStep(worker, (Schedule(max(0, round(after * 1000) - ago_ms), message),))
    return WorkerStep(worker, (CancelTimers(),)) if status is not Status.HEALTHY else WorkerStep(worker)


def job_changed(worker: SupervisedWorker, generation: int, job: Job | None) -> WorkerStep:
    """The living worker took or left a job."""
    if not is_up(worker, generation):
        return WorkerStep(worker)
    kept = held_work.hold_records(worker.spec, generation, job)
    return WorkerStep(replace(worker, job=job), tuple(map(KeepRecord, kept)))


def sustained(worker: SupervisedWorker, generation: int, world: World) -> WorkerStep:
    """Health lasted long enough: the streak is over, the lifetime count stays."""
    if not is_up(worker, generation) or worker.status is not Status.HEALTHY:
        return WorkerStep(worker)
    worker = replace(worker, restarts=cleared_streak(worker.restarts))
    return WorkerStep(worker, (KeepRecord(StreakCleared(worker.id, world.wall_ms)),))
