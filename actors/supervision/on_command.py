"""Pure: what follows from an operator's command for one worker."""

from __future__ import annotations

from msgspec.structs import replace

from ..deaths.death import Action, Cause
from ..facts.health_status import Status
from ..facts.records import DeathRecord, RestartReset
from ..messages import WorkerRecycled, WorkerReset, WorkerStopping
from ..rules.restarts import RestartState
from ..spec.policies.stop_policy import Urgency
from ..spec.worker_spec import PauseMode
from .restart_wait import back_off, held_back, is_between_runs, is_up, launch, rest_between_runs
from .worker import (
    Announce,
    BackingOff,
    CancelTimers,
    Effect,
    Failed,
    Halt,
    Idle,
    KeepRecord,
    ReportStop,
    Rest,
    SetCause,
    SetIdle,
    StopMonitoring,
    Stopping,
    StopReason,
    SupervisedWorker,
    Up,
    WorkerStep,
    World,
)


def start(worker: SupervisedWorker, world: World) -> WorkerStep:
    """Have it running: at once, without touching any counter."""
    match worker.phase:
        case Up() | Failed():
            return WorkerStep(worker)
        case Stopping(relaunch=False) as phase if worker.spec.schedule is not None:
            # Its run ends with this process; from then on its schedule counts again.
            return WorkerStep(replace(worker, phase=replace(phase, rest=Rest.SCHEDULED)))
        case Stopping() as phase:
            by_hand = phase.by_hand or world.by_hand
            return WorkerStep(replace(worker, phase=replace(phase, relaunch=True, by_hand=by_hand)))
        case Idle() | BackingOff():
            if world.paused:
                # A pause ends a delay, also one that a former run decided.
                paused = replace(worker, phase=Idle(Rest.PAUSED), not_before_ms=None)
                return WorkerStep(paused, (CancelTimers(),))
            if is_between_runs(worker):
                return rest_between_runs(worker)
            if worker.lingering is not None:
                waiting = Stopping(worker.lingering, Rest.STOPPED, relaunch=True, by_hand=world.by_hand)
                return WorkerStep(replace(worker, phase=waiting), (CancelTimers(),))
            if (held := held_back(worker, world)) is not None:
                return held
            if worker.not_before_ms is not None and worker.not_before_ms > world.now_ms and not world.by_hand:
                return _resume_backoff(worker, worker.not_before_ms, world)
            return launch(worker, world)


def _resume_backoff(worker: SupervisedWorker, due_ms: int, world: World) -> WorkerStep:
    """Wait for the rest of a delay that a former run decided."""
    record = DeathRecord(
        component_id=worker.id,
        generation=worker.generation,
        died_at_wall_ms=world.wall_ms,
        cause=Cause.UNKNOWN,
        exit_code=None,
        signal=None,
        uptime_ms=0,
        job=None,
        action=Action.RESTART,
        reason="decided before the supervisor restarted",
    )
    phase = BackingOff(
        record,
        decided_ms=world.now_ms,
        due_ms=due_ms,
        attempt=worker.restarts.restart_count,
        elapsed=False,
        kept=True,  # by the run that decided it
        former=True,
    )
    return back_off(replace(worker, phase=phase, status=Status.DEAD, not_before_ms=None), phase, world)


def stop(
    worker: SupervisedWorker,
    urgency: Urgency = Urgency.GRACEFUL,
    rest: Rest = Rest.STOPPED,
    reason: StopReason = StopReason.OPERATOR,
    because: str = "",
) -> WorkerStep:
    """Have it gone. What was counted stays counted. `because`: the worker on whose account it stops."""
    match worker.phase:
        case Up(generation=generation, since_ms=since_ms, pid=pid):
            phase = Stopping(generation, rest, urgency=urgency, reason=reason, since_ms=since_ms, pid=pid)
            begun = Announce(WorkerStopping(worker.id, generation, reason.value, because))
            halt = (CancelTimers(), begun, StopMonitoring(), Halt(generation, urgency))
            return WorkerStep(replace(worker, phase=phase), halt)
        case Stopping() as phase:
            # Its group waits for the end of what it stopped, also if an operator stops it meanwhile.
            keeps = phase.reason in (None, StopReason.GROUP)
            urgency, why = max(urgency, phase.urgency), phase.reason if keeps else reason
            phase = replace(phase, rest=rest, relaunch=False, by_hand=False, urgency=urgency, reason=why)
            return WorkerStep(replace(worker, phase=phase), (Halt(phase.generation, phase.urgency),))
        case BackingOff():
            idle = replace(worker, phase=Idle(rest), status=None)
            return WorkerStep(idle, (CancelTimers(), StopMonitoring(), *_rested(worker, urgency)))
        case Idle(rest=Rest.HELD):
            return WorkerStep(replace(worker, phase=Idle(rest), status=None), _rested(worker, urgency))
        case Idle(rest=Rest.DONE) if worker.spec.is_task:
            return WorkerStep(worker, _rested(worker, urgency))
        case Idle(why=why):
            return WorkerStep(replace(worker, phase=Idle(rest, why)), _rested(worker, urgency))
        case Failed():
            return WorkerStep(worker, _rested(worker, urgency))


def pause(worker: SupervisedWorker) -> WorkerStep:
    """Hold the worker back, in the way that its spec says."""
    if worker.spec.pause_mode is PauseMode.IDLE and isinstance(worker.phase, Up):
        return WorkerStep(worker, (SetIdle(worker.phase.generation, paused=True),))
    match worker.phase:
        case Idle(rest=Rest.STOPPED | Rest.LEFT | Rest.DONE | Rest.RESET):
            return WorkerStep(worker)  # it is down for another reason, which outlasts the pause
        case Stopping(rest=Rest.STOPPED, relaunch=False):
            return WorkerStep(worker)
        case _:
            return stop(worker, rest=Rest.PAUSED, reason=StopReason.PAUSE)


def resume(worker: SupervisedWorker, world: World) -> WorkerStep:
    """End a pause: what it held back starts at once; what is failed or was stopped stays so."""
    match worker.phase:
        case Up(generation=generation):
            # Even if its spec has changed: a worker that runs during a pause was told to idle.
            return WorkerStep(worker, (SetIdle(generation, paused=False),))
        case Idle(rest=Rest.PAUSED | Rest.RESET):
            return start(worker, world)
        case Stopping(rest=Rest.PAUSED):
            return start(worker, world)
        case _:
            return WorkerStep(worker)


def reset(worker: SupervisedWorker, world: World) -> WorkerStep:
    """Clear counters and failure; nothing is started, and what runs continues."""
    clear = (KeepRecord(RestartReset(worker.id, world.wall_ms)), Announce(WorkerReset(worker.id)))
    worker = replace(worker, restarts=RestartState(), not_before_ms=None)
    match worker.phase:
        case Failed() | Idle() | BackingOff() as phase:
            # One that an operator stopped stays stopped: a later resume is not meant for it.
            stays = isinstance(phase, Idle) and phase.rest in _STAYS
            stays |= worker.is_done and worker.spec.is_task
            worker = replace(worker, phase=phase if stays else Idle(Rest.RESET), status=None)
            return WorkerStep(worker, (CancelTimers(), *clear, StopMonitoring()))
        case Up() | Stopping():
            return WorkerStep(worker, clear)


def refund(worker: SupervisedWorker, restarts: int) -> WorkerStep:
    """Count the first of its restarts no longer: it was a node of the cluster that had it die."""
    state = worker.restarts
    left = replace(
        state,
        restart_count=max(0, state.restart_count - restarts),
        streak_count=max(0, state.streak_count - restarts),
        deaths_ms=state.deaths_ms[restarts:],
    )
    return WorkerStep(replace(worker, restarts=left))


_STAYS = frozenset({Rest.STOPPED, Rest.HELD, Rest.GROUP, Rest.SCHEDULED})


def restart(worker: SupervisedWorker, world: World) -> WorkerStep:
    """Reset, then start afresh: a running process is stopped first."""
    cleared = reset(worker, world)
    worker = cleared.worker
    up = isinstance(worker.phase, Up)
    begun = renew(worker, StopReason.RESTART) if up else start(worker, world)
    return WorkerStep(begun.worker, (*cleared.effects, *begun.effects))


def renew(worker: SupervisedWorker, reason: StopReason, urgency: Urgency = Urgency.GRACEFUL) -> WorkerStep:
    """Have a new process for a spec that changed; nothing is counted, and what is down stays down."""
    if not isinstance(worker.phase, Up):
        return WorkerStep(worker)
    halted = stop(worker, urgency, reason=reason)
    phase = halted.worker.phase
    assert isinstance(phase, Stopping)
    phase = replace(phase, relaunch=True, by_hand=reason is StopReason.RESTART)
    return WorkerStep(replace(halted.worker, phase=phase), halted.effects)


def recycle(worker: SupervisedWorker, reason: str, urgency: Urgency = Urgency.GRACEFUL) -> WorkerStep:
    """Have a new process for a worker that is well; nothing is counted."""
    renewed = renew(worker, StopReason.RECYCLE, urgency)
    event = WorkerRecycled(worker.id, worker.generation, reason)
    return WorkerStep(renewed.worker, (Announce(event), *renewed.effects)) if renewed.effects else renewed


def limit_exceeded(worker: SupervisedWorker, generation: int, detail: str) -> WorkerStep:
    """Kill a worker that uses too much; its death is the monitor's to tell."""
    if not is_up(worker, generation):
        return WorkerStep(worker)
    return WorkerStep(worker, (SetCause(generation, detail), Halt(generation, Urgency.KILL)))


def _rested(worker: SupervisedWorker, urgency: Urgency) -> tuple[Effect, ...]:
    """Say that it is at rest; one that was taken for dead and still ends, is ended as firmly as is wanted."""
    if worker.lingering is not None:
        return (Halt(worker.lingering, urgency),)
    return (ReportStop(None, None),)
