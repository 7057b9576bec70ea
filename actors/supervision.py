"""Pure: what the Supervisor makes of one worker.

    idle ─start─▶ up ─dies─▶ backing off ─elapsed, kept, reaped─▶ up (generation + 1)
     ▲             │ stop       │ stop, pause       └─ limit ─▶ failed ─reset─▶ idle
     └─ stopping ◀─┘            └────────────────▶ idle

A worker is a value; every function takes one and returns the next, with the effects that
the Supervisor carries out. At most one restart can be pending because `BackingOff` is one
phase of one worker. A process of an older generation that still lives holds the next start
back: `lingering` says which.
"""

from __future__ import annotations

from msgspec.structs import replace

from . import held_work, releases
from .bundles import Bundle, bundle_of
from .deaths import HUNG, Cause, Death, Exit, Job
from .evidence import Remains
from .health import Status
from .internal_messages import BackoffElapsed, HealthSustained
from .lifecycle import Urgency
from .messages import (
    Budget,
    WorkerDied,
    WorkerFailed,
    WorkerRecycled,
    WorkerReset,
    WorkerStopped,
    WorkerStopping,
)
from .records import DeathAmended, DeathRecord, RememberedWorker, RestartReset, StreakCleared
from .requested_ends import requested_end
from .restarts import (
    DEFAULT_FAILURE,
    Action,
    Circumstances,
    Decision,
    RestartState,
    cleared_streak,
    decide,
)
from .spec import PauseMode, WorkerSpec
from .status import budget
from .work_items import released_exit
from .worker_state import (
    Announce,
    AwaitSave,
    BackingOff,
    Blame,
    CancelTimers,
    Effect,
    Examine,
    Failed,
    Forget,
    GiveUp,
    Halt,
    Idle,
    Idling,
    KeepRecord,
    Launch,
    OpenDeath,
    ReleaseWork,
    ReportStop,
    Rest,
    Schedule,
    Step,
    Stopping,
    StopReason,
    Up,
    Worker,
    World,
)

SAVE_TIMEOUT_MS = 2000
"""How long a restart waits for its death to be kept before it goes on from memory."""


# ── From the store ───────────────────────────────────────────────────────────────────────


def remembered(spec: WorkerSpec, known: RememberedWorker, world: World) -> Step:
    """A worker as the former run left it: counters, failure, and a delay that is not over."""

    def moved(wall_ms: int) -> int:
        # Wall time becomes a point on our own timeline; a stamp from the future counts as now.
        return world.now_ms - max(0, world.wall_ms - wall_ms)

    last = known.last_restart_wall_ms
    # A reset clears the last restart; the death that it followed stays, and its delay means nothing now.
    due = None if last is None else known.restart_due_wall_ms
    longest_ms = round(spec.restart.max_delay_s * 1000)
    worker = Worker(
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
        return Step(replace(worker, phase=phase, status=Status.FAILED), (GiveUp(),))
    return Step(worker)


# ── Health, as the monitor tells it ──────────────────────────────────────────────────────


def health_changed(worker: Worker, generation: int, status: Status, ago_ms: int = 0) -> Step:
    """A change of a living worker, some time ago: only sustained health ever clears the streak."""
    if not is_up(worker, generation):
        return Step(worker)
    worker = replace(worker, status=status)
    after = worker.spec.restart.reset_after_healthy_s
    if status is Status.HEALTHY and after is not None and worker.restarts.streak_count:
        message = HealthSustained(worker.id, generation)
        return Step(worker, (Schedule(max(0, round(after * 1000) - ago_ms), message),))
    return Step(worker, (CancelTimers(),)) if status is not Status.HEALTHY else Step(worker)


def job_changed(worker: Worker, generation: int, job: Job | None) -> Step:
    """The living worker took or left a job."""
    if not is_up(worker, generation):
        return Step(worker)
    kept = held_work.written(worker.spec, generation, job)
    return Step(replace(worker, job=job), tuple(map(KeepRecord, kept)))


def sustained(worker: Worker, generation: int, world: World) -> Step:
    """Health lasted long enough: the streak is over, the lifetime count stays."""
    if not is_up(worker, generation) or worker.status is not Status.HEALTHY:
        return Step(worker)
    worker = replace(worker, restarts=cleared_streak(worker.restarts))
    return Step(worker, (KeepRecord(StreakCleared(worker.id, world.wall_ms)),))


def died(worker: Worker, death: Death, world: World) -> Step:
    """A death, once per incarnation: decide, write it down, then act."""
    if not is_up(worker, death.generation):
        return Step(worker)
    around = Circumstances(
        now_ms=world.now_ms,
        stopping=world.stopping,
        paused=world.paused,
        held=world.held,
        chance=world.chance,
    )
    decision = decide(worker.spec.restart, worker.restarts, death, around)
    ended = death.exit != Exit() or death.cause is Cause.SPAWN_FAILED
    alive = worker.lingering == death.generation and not ended
    release = held_work.order(worker.spec, death.generation, death.job, death.exit)
    worker = replace(
        worker,
        restarts=decision.state,
        status=Status.DEAD,
        job=None,
        open_death=OpenDeath(death, world.wall_ms) if alive else None,
        unreleased=release if alive else None,
    )
    record = death_record(death, decision, world.wall_ms, _version(death, world))
    event = _died_event(death, decision, budget(worker, world.now_ms), record.bundle)
    effects: list[Effect] = [CancelTimers(), KeepRecord(record), Announce(event)]
    if release is not None and not alive:
        effects.append(ReleaseWork(release))
    if decision.streak_cleared and decision.action is Action.NOTIFY_ONLY:
        # The death's own record changes counters only where it counts or fails.
        effects.append(KeepRecord(StreakCleared(worker.id, world.wall_ms)))
    if alive:
        # Taken for dead while it still runs: it must be gone before another one starts.
        effects.append(Halt(death.generation, Urgency.FIRM, hung=death.cause in HUNG))
    else:
        effects += releases.after_death(worker, death)
    step = _after_death(worker, death, decision, record, world)
    return Step(step.worker, (*effects, *step.effects))


def _version(death: Death, world: World) -> str | None:
    """What died: as it was started, or where nothing tells of that, as it was when last looked at."""
    started = None if death.remains is None else death.remains.fingerprint.version
    return started or world.version


def death_record(death: Death, decision: Decision, wall_ms: int, version: str | None = None) -> DeathRecord:
    """A death and its decision, as they are kept."""
    return DeathRecord(
        component_id=death.component_id,
        generation=death.generation,
        died_at_wall_ms=wall_ms,
        cause=death.cause,
        exit_code=death.exit.code,
        signal=death.exit.signal,
        uptime_ms=death.uptime_ms,
        job=death.job,
        action=decision.action,
        reason=decision.reason,
        delay_ms=decision.delay_ms,
        streak_cleared=decision.streak_cleared,
        bundle=bundle_of(death, wall_ms, death.exit, death.remains),
        version=version,
    )


def _after_death(worker: Worker, death: Death, decision: Decision, record: DeathRecord, world: World) -> Step:
    match decision.action:
        case Action.RESTART:
            phase = BackingOff(
                record,
                decided_ms=world.now_ms,
                due_ms=world.now_ms + decision.delay_ms,
                attempt=decision.state.restart_count,
                elapsed=decision.delay_ms == 0,
            )
            return _back_off(replace(worker, phase=phase), phase, world)
        case Action.MARK_FAILED:
            reason = decision.failure_reason or DEFAULT_FAILURE
            failed = replace(worker, phase=Failed(reason, record.version), status=Status.FAILED)
            event = WorkerFailed(worker.id, death.generation, reason)
            return Step(failed, (GiveUp(), Announce(event)))
        case Action.HELD:
            return Step(replace(worker, phase=Idle(Rest.HELD, decision.reason)))
        case Action.NOTIFY_ONLY | Action.NONE:
            rest = Rest.PAUSED if world.paused else Rest.STOPPED if world.stopping else Rest.LEFT
            return Step(replace(worker, phase=Idle(rest, f"{death}; {decision.reason}")))


def _died_event(death: Death, decision: Decision, left: Budget, bundle: Bundle | None) -> WorkerDied:
    return WorkerDied(
        death,
        decision.action.value,
        decision.reason,
        decision.delay_ms / 1000,
        decision.state.restart_count,
        decision.state.streak_count,
        left,
        None if bundle is None else bundle.finding,
        None if bundle is None else bundle.confidence,
    )


# ── The wait before a restart ────────────────────────────────────────────────────────────


def backoff_elapsed(worker: Worker, timer: BackoffElapsed, world: World) -> Step:
    """The delay is over; a timer of an older attempt says nothing."""
    phase = worker.phase
    if not isinstance(phase, BackingOff) or (phase.record.generation, phase.attempt) != (
        timer.generation,
        timer.attempt,
    ):
        return Step(worker)
    return _proceed(worker, replace(phase, elapsed=True), world)


def kept(worker: Worker, generation: int, world: World) -> Step:
    """The death is in the store."""
    phase = worker.phase
    if not isinstance(phase, BackingOff) or phase.record.generation != generation:
        return Step(worker)
    return _proceed(worker, replace(phase, kept=True), world)


def is_unsaved(worker: Worker, generation: int) -> bool:
    """Whether the restart after this death still waits for the store."""
    phase = worker.phase
    return isinstance(phase, BackingOff) and phase.record.generation == generation and not phase.kept


def save_overdue(worker: Worker, generation: int, world: World) -> Step:
    """The store does not answer: go on from memory. The recorder keeps trying."""
    return kept(worker, generation, world)


def _back_off(worker: Worker, phase: BackingOff, world: World) -> Step:
    if phase.elapsed:
        return _proceed(worker, phase, world)
    message = BackoffElapsed(worker.id, phase.record.generation, phase.attempt)
    return Step(worker, (Schedule(max(0, phase.due_ms - world.now_ms), message),))


def _proceed(worker: Worker, phase: BackingOff, world: World) -> Step:
    """Start now if nothing holds the restart back any more."""
    worker = replace(worker, phase=phase)
    if not phase.elapsed or worker.lingering is not None:
        return Step(worker)
    if not phase.kept:
        left = max(0, phase.decided_ms + SAVE_TIMEOUT_MS - world.now_ms)
        return Step(worker, (AwaitSave(phase.record.generation, left),))
    if world.stopping or world.paused:
        rest = Rest.PAUSED if world.paused else Rest.STOPPED
        return Step(replace(worker, phase=Idle(rest)), (CancelTimers(),))
    return _hold(worker, world.held) if world.held is not None else _launch(worker, world)


def _hold(worker: Worker, why: str) -> Step:
    """What would start now waits for the breaker instead."""
    return Step(replace(worker, phase=Idle(Rest.HELD, f"held back: {why}")), (CancelTimers(),))


def is_held(worker: Worker) -> bool:
    """Whether it comes back when its breaker closes, instead of sitting out its delay."""
    match worker.phase:
        case Idle(rest=Rest.HELD) | BackingOff():
            return True
        case _:
            return False


def _launch(worker: Worker, world: World) -> Step:
    """The one way in which a process comes to be, at the first start as after a death."""
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
    return Step(worker, (CancelTimers(), Launch(generation)))


# ── The process, as its proxy tells it ───────────────────────────────────────────────────


def process_started(worker: Worker, generation: int, pid: int, world: World) -> Step:
    """The incarnation has a pid, and hears now what it could not hear before."""
    if not isinstance(worker.phase, Up) or worker.phase.generation != generation:
        return Step(worker)
    worker = replace(worker, phase=replace(worker.phase, pid=pid))
    step = pause(worker) if world.paused else Step(worker)
    kept = held_work.written(worker.spec, generation, worker.job)
    return Step(step.worker, (*map(KeepRecord, kept), *step.effects))


def refused(worker: Worker, generation: int) -> Step:
    """The monitor holds the worker for failed and will not watch it: it must not run unwatched."""
    if not is_up(worker, generation):
        return Step(worker)
    return stop(worker, Urgency.KILL, reason=StopReason.REFUSED)


def process_gone(
    worker: Worker,
    generation: int,
    exit_: Exit,
    forced: int | None,
    world: World,
    remains: Remains | None = None,
) -> Step:
    """Nothing is left of an incarnation: what waited for that goes on."""
    if worker.lingering != generation and not _awaits_end(worker, generation):
        return Step(worker)
    amendment = (*_amendment(worker, generation, exit_, remains), *_late_release(worker, exit_))
    worker = replace(worker, lingering=None, open_death=None, unreleased=None)
    match worker.phase:
        case BackingOff() as phase:
            step = _proceed(worker, phase, world)
        case Stopping() as phase:
            kept = requested_end(worker, phase, exit_, remains, world)
            step = _stopped(worker, phase, exit_, forced, world)
            step = Step(step.worker, (*kept, *step.effects))
        case Idle() | Failed():
            step = Step(worker, (ReportStop(exit_, forced),))
        case Up():
            # Its death is the monitor's to tell.
            step = Step(worker)
    return Step(step.worker, (*amendment, *step.effects))


def _awaits_end(worker: Worker, generation: int) -> bool:
    # A stop that came between the end of a process and the news of its death: the proxy, told to
    # end what is gone already, says once more that it is gone.
    return isinstance(worker.phase, Stopping) and worker.phase.generation == generation


def _amendment(worker: Worker, generation: int, exit_: Exit, remains: Remains | None) -> tuple[Effect, ...]:
    open_death = worker.open_death
    if open_death is None:
        return ()
    released = releases.after_late_end(worker, generation, str(open_death.death), exit_)
    if exit_ == Exit():
        return released
    amended = DeathAmended(
        component_id=worker.id,
        generation=generation,
        exit_code=exit_.code,
        signal=exit_.signal,
        bundle=bundle_of(open_death.death, open_death.at_wall_ms, exit_, remains),
    )
    return (KeepRecord(amended), *released)


def _late_release(worker: Worker, exit_: Exit) -> tuple[Effect, ...]:
    return () if worker.unreleased is None else (ReleaseWork(worker.unreleased.ended(exit_)),)


def _stopped(worker: Worker, phase: Stopping, exit_: Exit, forced: int | None, world: World) -> Step:
    ended: tuple[Effect, ...] = (Announce(WorkerStopped(worker.id, phase.generation, exit_, forced)),)
    ended += releases.after_stop(worker, phase.generation, exit_, forced)
    release = held_work.order(worker.spec, phase.generation, worker.job, exit_)
    if release is not None and released_exit(exit_, forced):
        # Not a death; but who is killed on the way leaves behind what it was at.
        ended += (ReleaseWork(release),)
    elif release is not None:
        ended += (KeepRecord(held_work.struck(release)),)
    if phase.relaunch and not world.stopping and not world.paused:
        step = _launch(worker, world) if world.held is None else _hold(worker, world.held)
        # Whoever waits for the stop hears that it was, and that it does not last.
        report = ReportStop(exit_, forced, relaunched=True)
        return Step(step.worker, (*ended, report, *step.effects))
    rest = Rest.PAUSED if phase.relaunch and world.paused else phase.rest
    worker = replace(worker, phase=Idle(rest), status=None, job=None)
    return Step(worker, (*ended, ReportStop(exit_, forced)))


# ── What operators want ──────────────────────────────────────────────────────────────────


def start(worker: Worker, world: World) -> Step:
    """Have it running: at once, without touching any counter."""
    match worker.phase:
        case Up() | Failed():
            return Step(worker)
        case Stopping() as phase:
            return Step(replace(worker, phase=replace(phase, relaunch=True)))
        case Idle() | BackingOff():
            if world.paused:
                return Step(replace(worker, phase=Idle(Rest.PAUSED)), (CancelTimers(),))
            if worker.lingering is not None:
                waiting = Stopping(worker.lingering, Rest.STOPPED, relaunch=True)
                return Step(replace(worker, phase=waiting), (CancelTimers(),))
            if world.held is not None:
                return _hold(worker, world.held)
            if worker.not_before_ms is not None and worker.not_before_ms > world.now_ms:
                return _resume_backoff(worker, worker.not_before_ms, world)
            return _launch(worker, world)


def _resume_backoff(worker: Worker, due_ms: int, world: World) -> Step:
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
    return _back_off(replace(worker, phase=phase, status=Status.DEAD, not_before_ms=None), phase, world)


def stop(
    worker: Worker,
    urgency: Urgency = Urgency.GRACEFUL,
    rest: Rest = Rest.STOPPED,
    reason: StopReason = StopReason.OPERATOR,
) -> Step:
    """Have it gone. What was counted stays counted."""
    match worker.phase:
        case Up(generation=generation, since_ms=since_ms):
            phase = Stopping(generation, rest, urgency=urgency, reason=reason, since_ms=since_ms)
            begun = Announce(WorkerStopping(worker.id, generation, reason.value))
            halt = (CancelTimers(), begun, Forget(), Halt(generation, urgency))
            return Step(replace(worker, phase=phase), halt)
        case Stopping() as phase:
            urgency, why = max(urgency, phase.urgency), None if phase.reason is None else reason
            phase = replace(phase, rest=rest, relaunch=False, urgency=urgency, reason=why)
            return Step(replace(worker, phase=phase), (Halt(phase.generation, phase.urgency),))
        case BackingOff():
            idle = replace(worker, phase=Idle(rest), status=None)
            return Step(idle, (CancelTimers(), Forget(), *_rested(worker)))
        case Idle(rest=Rest.HELD):
            return Step(replace(worker, phase=Idle(rest), status=None), _rested(worker))
        case Idle(why=why):
            return Step(replace(worker, phase=Idle(rest, why)), _rested(worker))
        case Failed():
            return Step(worker, _rested(worker))


def pause(worker: Worker) -> Step:
    """Hold the worker back, in the way that its spec says."""
    if worker.spec.pause_mode is PauseMode.IDLE and isinstance(worker.phase, Up):
        return Step(worker, (Idling(worker.phase.generation, paused=True),))
    match worker.phase:
        case Idle(rest=Rest.STOPPED | Rest.LEFT | Rest.RESET) | Stopping(rest=Rest.STOPPED, relaunch=False):
            return Step(worker)  # it is down for another reason, which outlasts the pause
        case _:
            return stop(worker, rest=Rest.PAUSED, reason=StopReason.PAUSE)


def resume(worker: Worker, world: World) -> Step:
    """End a pause: what it held back starts at once; what is failed or was stopped stays so."""
    match worker.phase:
        case Up(generation=generation):
            # Whatever its spec says by now, one that runs in a pause was told to idle.
            return Step(worker, (Idling(generation, paused=False),))
        case Idle(rest=Rest.PAUSED | Rest.RESET):
            return start(worker, world)
        case Stopping(rest=Rest.PAUSED):
            return start(worker, world)
        case _:
            return Step(worker)


def reset(worker: Worker, world: World) -> Step:
    """Clear counters and failure; nothing is started, and what runs goes on."""
    clear = (KeepRecord(RestartReset(worker.id, world.wall_ms)), Announce(WorkerReset(worker.id)))
    worker = replace(worker, restarts=RestartState(), not_before_ms=None)
    match worker.phase:
        case Failed() | Idle() | BackingOff() as phase:
            # One that an operator stopped stays stopped: a later resume is not meant for it.
            stays = isinstance(phase, Idle) and phase.rest in (Rest.STOPPED, Rest.HELD)
            worker = replace(worker, phase=phase if stays else Idle(Rest.RESET), status=None)
            return Step(worker, (CancelTimers(), *clear, Forget()))
        case Up() | Stopping():
            return Step(worker, clear)


def restart(worker: Worker, world: World) -> Step:
    """Reset, then start afresh: a running process is stopped first."""
    cleared = reset(worker, world)
    worker = cleared.worker
    up = isinstance(worker.phase, Up)
    begun = renew(worker, StopReason.RESTART) if up else start(worker, world)
    return Step(begun.worker, (*cleared.effects, *begun.effects))


def renew(worker: Worker, reason: StopReason) -> Step:
    """Have a new process for a spec that changed; nothing is counted, and what is down stays down."""
    if not isinstance(worker.phase, Up):
        return Step(worker)
    halted = stop(worker, reason=reason)
    phase = halted.worker.phase
    assert isinstance(phase, Stopping)
    return Step(replace(halted.worker, phase=replace(phase, relaunch=True)), halted.effects)


def recycle(worker: Worker, reason: str) -> Step:
    """Have a new process for a worker that is well; nothing is counted."""
    renewed = renew(worker, StopReason.RECYCLE)
    event = WorkerRecycled(worker.id, worker.generation, reason)
    return Step(renewed.worker, (Announce(event), *renewed.effects)) if renewed.effects else renewed


def limit_exceeded(worker: Worker, generation: int, detail: str) -> Step:
    """Kill a worker that uses too much; its death is the monitor's to tell."""
    if not is_up(worker, generation):
        return Step(worker)
    return Step(worker, (Blame(generation, detail), Halt(generation, Urgency.KILL)))


def _rested(worker: Worker) -> tuple[Effect, ...]:
    return () if worker.lingering is not None else (ReportStop(None, None),)


# ── After an actor was replaced ──────────────────────────────────────────────────────────


def reconcile(worker: Worker, found: int | None, world: World) -> Step:
    """Fit what is wanted to what really runs; the answer of the process table is the truth."""
    rested = () if worker.lingering is None else (ReportStop(Exit(), None),)
    late = () if found is not None else _amendment(worker, worker.generation, Exit(), None)
    worker = replace(worker, lingering=found, open_death=worker.open_death if found is not None else None)
    match worker.phase:
        case Up(generation=generation):
            # Whether it is dead, and of what, is the monitor's to tell.
            idle = world.paused and worker.spec.pause_mode is PauseMode.IDLE
            pause = (Idling(generation, paused=True),) if idle else ()
            return Step(worker, (Examine(found), *pause))
        case BackingOff() as phase:
            again = _back_off(worker, phase, world)
            halt = () if found is None else (Halt(found, Urgency.FIRM),)
            # One that a former run decided is in the store with its true cause, which we do not know.
            keep = () if phase.former else (KeepRecord(phase.record),)
            return Step(again.worker, (*keep, *late, *halt, *again.effects))
        case Stopping() as phase if found is None:
            return _stopped(worker, phase, Exit(), None, world)
        case Stopping() as phase:
            return Step(worker, (Halt(phase.generation, phase.urgency),))
        case Idle() | Failed():
            return Step(worker, (*late, *rested) if found is None else (Halt(found, Urgency.FIRM),))


def is_up(worker: Worker, generation: int) -> bool:
    """Whether this incarnation is the one that runs, or is to."""
    return isinstance(worker.phase, Up) and worker.phase.generation == generation
