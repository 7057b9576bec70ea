"""Pure: the wait before a restart, and the one way in which a process comes to be."""

from __future__ import annotations

from msgspec.structs import replace

from ..facts.generations import GenerationsReserved, mark_after
from ..facts.health_status import Status
from ..facts.runs import Hindrance
from ..messages.internal.to_supervisor import BackoffElapsed
from .worker import (
    AwaitSave,
    BackingOff,
    CancelTimers,
    Idle,
    KeepRecord,
    Launch,
    Rest,
    Schedule,
    SupervisedWorker,
    Up,
    WorkerStep,
    World,
)

SAVE_TIMEOUT_MS = 2000
"""How long a restart waits for its death to be kept before it continues from memory."""


def backoff_elapsed(worker: SupervisedWorker, timer: BackoffElapsed, world: World) -> WorkerStep:
    """The delay is over; a timer of an older attempt says nothing."""
    phase = worker.phase
    if not isinstance(phase, BackingOff) or (phase.record.generation, phase.attempt) != (
        timer.generation,
        timer.attempt,
    ):
        return WorkerStep(worker)
    return proceed(worker, replace(phase, elapsed=True), world)


def kept(worker: SupervisedWorker, generation: int, world: World) -> WorkerStep:
    """The death is in the store."""
    phase = worker.phase
    if not isinstance(phase, BackingOff) or phase.record.generation != generation:
        return WorkerStep(worker)
    return proceed(worker, replace(phase, kept=True), world)


def is_unsaved(worker: SupervisedWorker, generation: int) -> bool:
    """Whether the restart after this death still waits for the store."""
    phase = worker.phase
    return isinstance(phase, BackingOff) and phase.record.generation == generation and not phase.kept


def save_overdue(worker: SupervisedWorker, generation: int, world: World) -> WorkerStep:
    """The store does not answer: continue from memory. The persistence actor keeps trying."""
    return kept(worker, generation, world)


def back_off(worker: SupervisedWorker, phase: BackingOff, world: World) -> WorkerStep:
    if phase.elapsed:
        return proceed(worker, phase, world)
    message = BackoffElapsed(worker.id, phase.record.generation, phase.attempt)
    return WorkerStep(worker, (Schedule(max(0, phase.due_ms - world.now_ms), message),))


def proceed(worker: SupervisedWorker, phase: BackingOff, world: World) -> WorkerStep:
    """Start now, unless something still holds the restart back."""
    worker = replace(worker, phase=phase)
    if not phase.elapsed or worker.lingering is not None:
        return WorkerStep(worker)
    if not phase.kept:
        left = max(0, phase.decided_ms + SAVE_TIMEOUT_MS - world.now_ms)
        return WorkerStep(worker, (AwaitSave(phase.record.generation, left),))
    if world.stopping or world.paused:
        rest = Rest.PAUSED if world.paused else Rest.STOPPED
        return WorkerStep(replace(worker, phase=Idle(rest)), (CancelTimers(),))
    return held_back(worker, world) or launch(worker, world)


def held_back(worker: SupervisedWorker, world: World) -> WorkerStep | None:
    """What becomes of a start that a breaker or the end of its group prevents; None if nothing does."""
    if world.down is not None:
        return bar(worker, world.down)
    return None if world.held is None else hold(worker, world.held)


def bar(worker: SupervisedWorker, why: str) -> WorkerStep:
    """What would start now waits until its group is restarted."""
    return WorkerStep(replace(worker, phase=Idle(Rest.GROUP, why), status=None), (CancelTimers(),))


def hold(worker: SupervisedWorker, why: str) -> WorkerStep:
    """What would start now waits for the breaker instead, also of a delay that a former run decided."""
    held = replace(worker, phase=Idle(Rest.HELD, f"held back: {why}"), not_before_ms=None)
    return WorkerStep(held, (CancelTimers(),))


def call_off(worker: SupervisedWorker, why: str) -> WorkerStep:
    """A start that has not been sent yet waits for the breaker instead."""
    return hold(replace(worker, lingering=None, status=None), why)


def is_held(worker: SupervisedWorker) -> bool:
    """Whether it comes back when its breaker closes, instead of sitting out its delay."""
    match worker.phase:
        case Idle(rest=Rest.HELD) | BackingOff():
            return True
        case _:
            return False


def launch(worker: SupervisedWorker, world: World) -> WorkerStep:
    """The one way in which a process comes to be, at the first start as after a death."""
    if is_between_runs(worker):
        return rest_between_runs(worker)
    generation = worker.generation + 1
    worker = replace(
        worker,
        phase=Up(generation, world.now_ms),
        generation=generation,
        lingering=generation,
        status=Status.PENDING,
        job=None,
        jobs=worker.spec.jobs if worker.spec.serves else None,
        not_before_ms=None,
        open_death=None,
    )
    return WorkerStep(worker, (CancelTimers(), *_moved_mark(worker), Launch(generation)))


def is_between_runs(worker: SupervisedWorker) -> bool:
    """Whether it has a schedule, and no run that continues: it has no process then."""
    policy, table = worker.spec.schedule, worker.timetable
    if policy is None:
        return False
    if table is None or table.current is None or not table.is_running:
        return True
    is_replaced = policy.overlap == "replace" and table.queued is not None
    return is_replaced or table.current.reason is Hindrance.TIMEOUT


def rest_between_runs(worker: SupervisedWorker) -> WorkerStep:
    """Wait for the next run."""
    return WorkerStep(replace(worker, phase=Idle(Rest.SCHEDULED), status=None), (CancelTimers(),))


def _moved_mark(worker: SupervisedWorker) -> tuple[KeepRecord, ...]:
    """Move the mark on when half of the reserved numbers are used; no start waits for that."""
    mark = mark_after(worker.generation)
    return (
        (KeepRecord(GenerationsReserved(worker.id, mark)),)
        if mark > mark_after(worker.generation - 1)
        else ()
    )


def is_up(worker: SupervisedWorker, generation: int) -> bool:
    """Whether this incarnation is the one that runs or will run."""
    return isinstance(worker.phase, Up) and worker.phase.generation == generation
