"""Pure: what the clock means for a scheduled worker, and when a run of it is over.

A scheduled worker has a process only while a run of it is running; between two runs it rests. `rules.
schedules.timetable` decides what is due, this module starts and ends the worker accordingly.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from ..deaths.death import Exit
from ..facts.records import DeathRecord, MetaSet, RestartReset
from ..facts.runs import Hindrance, Run, RunKept, RunState
from ..messages import (
    Event,
    RunDue,
    RunFailed,
    RunMissed,
    RunOverdue,
    RunSkipped,
    RunStarted,
    RunStopped,
    RunSucceeded,
    ScheduleChanged,
    WorkerStopped,
)
from ..messages.internal.to_supervisor import RunOvertime
from ..rules.restarts import RestartState
from ..rules.schedules import timetable as timetables
from ..rules.schedules.timetable import Timetable, TimetableStep
from ..spec.policies.schedule import SchedulePolicy
from ..spec.policies.stop_policy import Urgency
from .on_command import start, stop
from .worker import (
    Announce,
    BackingOff,
    CancelTimers,
    Effect,
    Failed,
    Halt,
    Idle,
    KeepRecord,
    LookAtClock,
    Rest,
    Schedule,
    SetCause,
    Stopping,
    StopReason,
    SupervisedWorker,
    Up,
    WorkerStep,
    World,
)

META = "schedule:"
"""The prefix of the setting with the timetable of a worker; its id follows."""

_RESTS = {
    Rest.PAUSED: Hindrance.PAUSED,
    Rest.GROUP: Hindrance.GROUP,
    Rest.NEW: Hindrance.SUPERVISOR_DOWN,
}
_STOPS = {
    StopReason.PAUSE: Hindrance.PAUSED,
    StopReason.CHANGE: Hindrance.CHANGED,
    StopReason.GROUP: Hindrance.GROUP,
    StopReason.REPLACED: Hindrance.REPLACED,
    # Another node of the cluster makes up for it.
    StopReason.MOVE: Hindrance.SHUTDOWN,
    StopReason.FENCED: Hindrance.SUPERVISOR_LOST,
}


# ── the timetable of a worker ────────────────────────────────────────────────────────────


def scheduled(
    worker: SupervisedWorker, stored: str | None, seen_ms: int, world: World, since_ms: int | None = None
) -> WorkerStep:
    """Give a worker that is supervised from now on its timetable, from what is stored if anything is.

    If nothing is, its schedule counts from now, or from the time since when another node had it.
    """
    policy, known = worker.spec.schedule, worker.timetable or _read(stored)
    if known is None and policy is not None and since_ms is not None:
        known = timetables.begun(worker.id, policy, min(since_ms, world.wall_ms))
    if policy is None:
        return WorkerStep(worker) if known is None else _unscheduled(replace(worker, timetable=known), world)
    if known is None:
        return _with(worker, TimetableStep(timetables.begun(worker.id, policy, world.wall_ms)))
    if worker.timetable is not None:  # it was removed for a while, and was not meant to run
        return _with(worker, TimetableStep(timetables.resumed(known, policy, world.wall_ms)))
    recovered = timetables.recovered(known, policy, world.wall_ms, seen_ms)
    return _with(replace(worker, timetable=known), recovered)


def replanned(worker: SupervisedWorker, world: World) -> WorkerStep:
    """The spec may have changed: another schedule counts from now on."""
    policy, table = worker.spec.schedule, worker.timetable
    if policy is None:
        return WorkerStep(worker) if table is None else _unscheduled(worker, world)
    if table is None:
        return scheduled(worker, None, 0, world)
    changed = timetables.replanned(table, policy, world.wall_ms)
    return WorkerStep(worker) if changed is table else _with(worker, TimetableStep(changed))


def _unscheduled(worker: SupervisedWorker, world: World) -> WorkerStep:
    """It has no schedule, or no longer: a run that is open ends; the numbers of its runs stay."""
    assert worker.timetable is not None
    closed = timetables.closed(worker.timetable, RunState.STOPPED, Hindrance.CHANGED, world.wall_ms)
    if closed.timetable == worker.timetable:
        return WorkerStep(worker)
    return _with(replace(worker, phase=Idle(Rest.NEW) if rests(worker) else worker.phase), closed)


def rests(worker: SupervisedWorker) -> bool:
    """Whether it waits for its next run."""
    return isinstance(worker.phase, Idle) and worker.phase.rest is Rest.SCHEDULED


def closed(stored: str, world: World) -> tuple[Effect, ...]:
    """End the runs of a worker that is no longer declared."""
    table = _read(stored)
    if table is None:
        return ()
    lost = timetables.closed(table, RunState.LOST, Hindrance.SUPERVISOR_LOST, world.wall_ms)
    return () if lost.timetable == table else (*_news(lost.runs), _kept(lost.timetable))


def _read(stored: str | None) -> Timetable | None:
    """The stored timetable; text of another version, or that cannot be read, counts for nothing."""
    try:
        return None if stored is None else msgspec.json.decode(stored, type=Timetable)
    except (msgspec.MsgspecError, ValueError):
        return None


# ── what is due ──────────────────────────────────────────────────────────────────────────


def look(worker: SupervisedWorker, world: World) -> WorkerStep:
    """Record what is due by now, and start the run that waits no longer."""
    policy, table = worker.spec.schedule, worker.timetable
    if policy is None or table is None or world.stopping:
        return WorkerStep(worker)
    hindered = hindrance(worker, world)
    done = timetables.advanced(table, policy, world.wall_ms, hindered, world.chance)
    step = WorkerStep(worker) if done == TimetableStep(table) else _with(worker, done)
    if hindered is not None:
        return _then(step, _drop(step.worker, hindered, world))
    if done.replaces:
        return _then(step, _replace(step.worker))
    return _then(step, _begin_if_ready(step.worker, policy, world))


def run_now(worker: SupervisedWorker, world: World) -> WorkerStep:
    """An operator wants a run now; `run_refusal` was asked before."""
    policy, table = worker.spec.schedule, worker.timetable
    assert policy is not None and table is not None
    done = timetables.requested(table, policy, world.wall_ms)
    step = _with(worker, done)
    if done.replaces:
        return _then(step, _replace(step.worker))
    return _then(step, _begin_if_ready(step.worker, policy, world))


def run_refusal(worker: SupervisedWorker, world: World) -> str | None:
    """Why the worker cannot be run now; None if it can."""
    policy, table, name = worker.spec.schedule, worker.timetable, worker.id
    if policy is None or table is None:
        return f"{name} has no schedule (every or cron); use start or restart"
    hindered = hindrance(worker, world)
    if hindered is Hindrance.PAUSED:
        return f"{name} is paused; resume it first"
    if hindered is Hindrance.STOPPED:
        return f"{name} is stopped; start it first, so that its schedule counts again"
    if hindered is not None:
        return f"{name} cannot run: {hindered.value.replace('_', ' ')}"
    if table.current is not None and policy.overlap == "skip":
        return f'run {table.current.number} of {name} is {table.current.state}, and overlap is "skip"'
    if table.queued is not None and policy.overlap == "queue":
        return f"run {table.queued.number} of {name} waits already"
    return None


def hindrance(worker: SupervisedWorker, world: World) -> Hindrance | None:
    """Why a run that is due now cannot be executed, apart from another run."""
    if world.paused:
        return Hindrance.PAUSED
    match worker.phase:
        case Idle(rest=Rest.SCHEDULED | Rest.HELD) | Up() | BackingOff():
            return None
        case Idle(rest=rest):
            return _RESTS.get(rest, Hindrance.STOPPED)
        case Stopping(rest=rest, relaunch=relaunch):
            comes_back = relaunch or rest is Rest.SCHEDULED
            return None if comes_back else _RESTS.get(rest, Hindrance.STOPPED)
        case Failed():
            return Hindrance.STOPPED


def _begin_if_ready(worker: SupervisedWorker, policy: SchedulePolicy, world: World) -> WorkerStep:
    table = worker.timetable
    if table is None or not timetables.is_ready(table, world.wall_ms):
        return WorkerStep(worker)
    if worker.lingering is not None and isinstance(worker.phase, Up):
        return WorkerStep(worker)  # not a run's process: the worker had no schedule when it started
    fresh: tuple[Effect, ...] = ()
    if worker.restarts != RestartState():
        fresh = (KeepRecord(RestartReset(worker.id, world.wall_ms)),)
    step = _with(worker, timetables.started(table, world.wall_ms))
    begun = replace(step.worker, restarts=RestartState(), begun_after=worker.generation)
    launched = start(begun, world)
    timer = () if policy.timeout_s is None else (_overtime(begun, policy.timeout_s),)
    return WorkerStep(launched.worker, (*fresh, *step.effects, *launched.effects, *timer))


def _overtime(worker: SupervisedWorker, timeout_s: float) -> Schedule:
    assert worker.timetable is not None and worker.timetable.current is not None
    message = RunOvertime(worker.id, worker.timetable.current.number)
    return Schedule(round(timeout_s * 1000), message)


def _drop(worker: SupervisedWorker, reason: Hindrance, world: World) -> WorkerStep:
    assert worker.timetable is not None
    dropped = timetables.dropped(worker.timetable, reason, world.wall_ms)
    return _with(worker, dropped) if dropped.runs else WorkerStep(worker)


def _replace(worker: SupervisedWorker) -> WorkerStep:
    """End the run that is running; the one that waits follows it."""
    if not isinstance(worker.phase, Up | BackingOff | Idle):
        return WorkerStep(worker)  # it is ending
    return stop(worker, rest=Rest.SCHEDULED, reason=StopReason.REPLACED)


# ── time limits ──────────────────────────────────────────────────────────────────────────


def overtime(worker: SupervisedWorker, number: int) -> WorkerStep:
    """A run takes too long: its process is asked to end, then made to; it has failed."""
    table, policy = worker.timetable, worker.spec.schedule
    run = None if table is None else table.current
    if table is None or policy is None or run is None or run.number != number or not table.is_running:
        return WorkerStep(worker)
    detail = f"the run took longer than {policy.timeout_s:g} s"
    current = replace(run, reason=Hindrance.TIMEOUT, detail=detail)
    worker = replace(worker, timetable=replace(table, current=current))
    match worker.phase:
        case Up(generation=generation):
            cause = SetCause(generation, detail, timeout=True)
            return WorkerStep(worker, (cause, Halt(generation, Urgency.GRACEFUL)))
        case BackingOff() | Idle():
            return WorkerStep(replace(worker, phase=Idle(Rest.LEFT, detail)), (CancelTimers(),))
        case Stopping() as phase:
            return WorkerStep(replace(worker, phase=replace(phase, relaunch=False)))
        case Failed():
            return WorkerStep(worker)


# ── the end of a run ─────────────────────────────────────────────────────────────────────


def settled(before: SupervisedWorker, step: WorkerStep, wall_ms: int, *, shutting_down: bool) -> WorkerStep:
    """The step, with the end of the run if the worker has come to rest by it."""
    worker = step.worker
    table, rest = worker.timetable, _at_rest(worker)
    if table is None or table.current is None or not table.is_running or rest is None:
        return step
    run = _with_process(worker, table.current, step.effects)
    over = _over(run, rest, _stop_reason(before, rest.rest, shutting_down))
    ended = timetables.ended(table, worker.spec.schedule, over, wall_ms)
    if rest.rest in (Rest.DONE, Rest.LEFT, Rest.RESET):
        worker = replace(worker, phase=Idle(Rest.SCHEDULED, rest.why))
    after = _with(worker, ended)
    return WorkerStep(after.worker, (*step.effects, *after.effects, LookAtClock()))


def _at_rest(worker: SupervisedWorker) -> Idle | None:
    """The phase of a worker whose run is over; None while it continues or waits for a breaker."""
    match worker.phase:
        case Idle(rest=Rest.HELD):
            return None
        case Idle() as phase:
            return phase
        case Failed(reason=reason):
            return Idle(Rest.LEFT, reason)
        case _:
            return None


def _with_process(worker: SupervisedWorker, run: Run, effects: tuple[Effect, ...]) -> Run:
    """The run with what its processes came to."""
    attempts = 0 if worker.begun_after is None else max(0, worker.generation - worker.begun_after)
    exit_ = _exit(effects)
    return replace(run, attempts=attempts, exit_code=exit_.code, signal=exit_.signal)


def _over(run: Run, phase: Idle, stopped: Hindrance) -> Run:
    if phase.rest is Rest.DONE:  # perhaps just as it was being ended
        return replace(run, state=RunState.SUCCEEDED, reason=None, detail="")
    if run.reason is Hindrance.TIMEOUT:
        return replace(run, state=RunState.FAILED)
    if phase.rest is Rest.LEFT:
        return replace(run, state=RunState.FAILED, detail=phase.why)
    return replace(run, state=RunState.STOPPED, reason=stopped)


def _stop_reason(before: SupervisedWorker, rest: Rest, shutting_down: bool) -> Hindrance:
    if shutting_down:
        return Hindrance.SHUTDOWN
    reason = before.phase.reason if isinstance(before.phase, Stopping) else None
    if reason is not None and reason in _STOPS:
        return _STOPS[reason]
    if rest is Rest.SCHEDULED and reason is not StopReason.OPERATOR:
        return Hindrance.REPLACED
    return _RESTS.get(rest, Hindrance.STOPPED)


def _exit(effects: tuple[Effect, ...]) -> Exit:
    """How the last process of the run ended, if it did in this step."""
    for effect in effects:
        if isinstance(effect, KeepRecord) and isinstance(effect.record, DeathRecord):
            return Exit(effect.record.exit_code, effect.record.signal)
        if isinstance(effect, Announce) and isinstance(effect.event, WorkerStopped):
            return effect.event.exit
    return Exit()


# ── what is kept and told ────────────────────────────────────────────────────────────────


def _with(worker: SupervisedWorker, done: TimetableStep) -> WorkerStep:
    before, table = worker.timetable, done.timetable
    effects: tuple[Effect, ...] = (*_news(done.runs), _kept(table))
    if before is not None and before.plan != table.plan:
        effects = (*effects, Announce(ScheduleChanged(worker.id, table.plan)))
    if done.is_overdue:
        overdue = RunOverdue(worker.id, table.since_ms, ever=table.succeeded_ms is not None)
        effects = (*effects, Announce(overdue))
    return WorkerStep(replace(worker, timetable=table), effects)


def _kept(table: Timetable) -> KeepRecord:
    return KeepRecord(MetaSet(META + table.component_id, msgspec.json.encode(table).decode()))


def _news(runs: list[Run] | tuple[Run, ...]) -> tuple[Effect, ...]:
    return tuple(effect for run in runs for effect in (KeepRecord(RunKept(run)), Announce(event_of(run))))


def _then(first: WorkerStep, second: WorkerStep) -> WorkerStep:
    return WorkerStep(second.worker, (*first.effects, *second.effects))


def event_of(run: Run) -> Event:
    """What is announced of a run that came into its state."""
    id_, number = run.component_id, run.number
    match run.state:
        case RunState.WAITING:
            return RunDue(id_, number, run.due_wall_ms, run.trigger)
        case RunState.RUNNING:
            return RunStarted(id_, number, run.due_wall_ms, run.trigger)
        case RunState.SUCCEEDED:
            return RunSucceeded(id_, number, run.duration_ms or 0, run.attempts)
        case RunState.FAILED | RunState.LOST:
            why = run.detail or "its supervisor ended without notice"
            return RunFailed(id_, number, why, run.duration_ms, run.attempts, run.exit_code, run.signal)
        case RunState.STOPPED:
            return RunStopped(id_, number, run.reason or Hindrance.STOPPED)
        case RunState.SKIPPED:
            return RunSkipped(id_, number, run.due_wall_ms, run.reason or Hindrance.OVERLAP, run.times)
        case RunState.MISSED:
            last = run.last_due_wall_ms or run.due_wall_ms
            why_missed = run.reason or Hindrance.SUPERVISOR_DOWN
            return RunMissed(id_, number, run.due_wall_ms, last, why_missed, run.times)
