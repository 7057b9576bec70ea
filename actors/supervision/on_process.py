"""Pure: what follows from a proxy's reports of a process, and from what a replaced actor finds."""

from __future__ import annotations

from msgspec.structs import replace

from ..deaths.crash_bundle import bundle_of
from ..deaths.death import Exit
from ..deaths.evidence import Remains
from ..facts.generations import GenerationEnded
from ..facts.records import DeathAmended
from ..messages import WorkerStopped
from ..spec.policies.stop_policy import Urgency
from ..spec.policies.work_item_policy import released_exit
from ..spec.worker_spec import PauseMode
from .after_death import held_work
from .after_death.aftermath import claims_after_late_end, claims_after_stop, evidence_of_stop
from .on_command import pause, stop
from .restart_wait import back_off, held_back, is_up, launch, proceed
from .worker import (
    Announce,
    BackingOff,
    CompareHealth,
    Effect,
    Failed,
    Halt,
    Idle,
    KeepRecord,
    ReleaseWork,
    ReportStop,
    Rest,
    SetIdle,
    Stopping,
    StopReason,
    SupervisedWorker,
    Up,
    WorkerStep,
    World,
)


def process_started(worker: SupervisedWorker, generation: int, pid: int, world: World) -> WorkerStep:
    """The incarnation has a pid, and gets the orders that it could not receive before."""
    if not isinstance(worker.phase, Up | Stopping) or worker.phase.generation != generation:
        return WorkerStep(worker)
    worker = replace(worker, phase=_with_pid(worker.phase, pid, world.now_ms))
    if isinstance(worker.phase, Stopping):  # it was stopped before its process existed
        return WorkerStep(worker)
    step = pause(worker) if world.paused else WorkerStep(worker)
    kept = held_work.hold_records(worker.spec, generation, worker.job)
    return WorkerStep(step.worker, (*map(KeepRecord, kept), *step.effects))


def _with_pid(phase: Up | Stopping, pid: int, now_ms: int) -> Up | Stopping:
    """With the process, which runs from now on: before, the worker waited for others or for its turn."""
    if isinstance(phase, Up):
        return replace(phase, pid=pid, delayed="", since_ms=now_ms)
    return replace(phase, pid=pid)


def start_delayed(worker: SupervisedWorker, generation: int, error: str) -> WorkerStep:
    """The machine has no room for the process; its proxy tries again, and the worker is not blamed."""
    if not is_up(worker, generation):
        return WorkerStep(worker)
    return WorkerStep(replace(worker, phase=replace(worker.phase, delayed=error)))


def refused(worker: SupervisedWorker, generation: int) -> WorkerStep:
    """The monitor holds the worker for failed and will not watch it: it must not run unwatched."""
    if not is_up(worker, generation):
        return WorkerStep(worker)
    return stop(worker, Urgency.KILL, reason=StopReason.REFUSED)


def process_gone(
    worker: SupervisedWorker,
    generation: int,
    exit_: Exit,
    forced: int | None,
    world: World,
    remains: Remains | None = None,
) -> WorkerStep:
    """Nothing is left of an incarnation: what waited for that continues."""
    if worker.lingering != generation and not _awaits_end(worker, generation):
        return WorkerStep(worker)
    amendment = (*_amendment(worker, generation, exit_, remains), *_late_release(worker, exit_))
    worker = replace(worker, lingering=None, open_death=None, unreleased=None)
    match worker.phase:
        case BackingOff() as phase:
            step = proceed(worker, phase, world)
        case Stopping() as phase:
            kept = evidence_of_stop(worker, phase, exit_, remains, world)
            step = _stopped(worker, phase, exit_, forced, world)
            step = WorkerStep(step.worker, (*kept, *step.effects))
        case Idle() | Failed():
            step = WorkerStep(worker, (ReportStop(exit_, forced),))
        case Up():
            # Its death is the monitor's to tell.
            step = WorkerStep(worker)
    return WorkerStep(step.worker, (*amendment, *step.effects))


def _awaits_end(worker: SupervisedWorker, generation: int) -> bool:
    # A stop that came between the end of a process and the report of its death: the proxy, asked to
    # end a process that is gone, reports its end once more.
    return isinstance(worker.phase, Stopping) and worker.phase.generation == generation


def _amendment(
    worker: SupervisedWorker, generation: int, exit_: Exit, remains: Remains | None
) -> tuple[Effect, ...]:
    open_death = worker.open_death
    if open_death is None:
        return ()
    released = claims_after_late_end(worker, generation, str(open_death.death), exit_, remains)
    if exit_ == Exit():
        return released
    amended = DeathAmended(
        component_id=worker.id,
        generation=generation,
        exit_code=exit_.code,
        signal=exit_.signal,
        bundle=bundle_of(open_death.death, open_death.at_wall_ms, exit_, remains, cwd=worker.spec.cwd),
    )
    return (KeepRecord(amended), *released)


def _late_release(worker: SupervisedWorker, exit_: Exit) -> tuple[Effect, ...]:
    return () if worker.unreleased is None else (ReleaseWork(worker.unreleased.ended(exit_)),)


def _stopped(
    worker: SupervisedWorker, phase: Stopping, exit_: Exit, forced: int | None, world: World
) -> WorkerStep:
    ended: tuple[Effect, ...] = (
        KeepRecord(GenerationEnded(worker.id, phase.generation)),
        Announce(WorkerStopped(worker.id, phase.generation, exit_, forced)),
    )
    ended += claims_after_stop(worker, phase.generation, exit_)
    release = held_work.order(worker.spec, phase.generation, worker.job, exit_)
    if release is not None and released_exit(exit_, forced):
        # Not a death; but a worker that had to be killed leaves its work item behind.
        ended += (ReleaseWork(release),)
    elif release is not None:
        ended += (KeepRecord(held_work.release_record(release)),)
    if phase.relaunch and not world.stopping and not world.paused:
        around = replace(world, held=None) if phase.by_hand else world
        step = held_back(replace(worker, status=None, job=None), around) or launch(worker, world)
        # The caller that waits for the stop learns that it happened and that it does not last.
        report = ReportStop(exit_, forced, relaunched=True)
        return WorkerStep(step.worker, (*ended, report, *step.effects))
    rest = Rest.PAUSED if phase.relaunch and world.paused else phase.rest
    worker = replace(worker, phase=Idle(rest), status=None, job=None)
    return WorkerStep(worker, (*ended, ReportStop(exit_, forced)))


def reconcile(worker: SupervisedWorker, found: int | None, world: World) -> WorkerStep:
    """Fit what is wanted to what really runs; the answer of the process table is the truth."""
    rested = () if worker.lingering is None else (ReportStop(Exit(), None),)
    late: tuple[Effect, ...] = ()
    if found is None:
        late = (*_amendment(worker, worker.generation, Exit(), None), *_late_release(worker, Exit()))
        worker = replace(worker, open_death=None, unreleased=None)
    worker = replace(worker, lingering=found)
    match worker.phase:
        case Up(generation=generation):
            # Whether it is dead, and of what, is the monitor's to tell.
            idle = world.paused and worker.spec.pause_mode is PauseMode.IDLE
            pause = (SetIdle(generation, paused=True),) if idle else ()
            return WorkerStep(worker, (*late, CompareHealth(found), *pause))
        case BackingOff() as phase:
            again = back_off(worker, phase, world)
            halt = () if found is None else (Halt(found, Urgency.FIRM),)
            # One that a former run decided is in the store with its true cause, which we do not know.
            keep = () if phase.former else (KeepRecord(phase.record),)
            return WorkerStep(again.worker, (*keep, *late, *halt, *again.effects))
        case Stopping() as phase if found is None:
            stopped = _stopped(worker, phase, Exit(), None, world)
            return WorkerStep(stopped.worker, (*late, *stopped.effects))
        case Stopping() as phase:
            return WorkerStep(worker, (Halt(phase.generation, phase.urgency),))
        case Idle() | Failed():
            return WorkerStep(worker, (*late, *rested) if found is None else (Halt(found, Urgency.FIRM),))
