"""Pure: a death, once per incarnation: decided, written down, acted on."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ..deaths.crash_bundle import Bundle, bundle_of
from ..deaths.death import HUNG, Action, Cause, Death, Exit
from ..facts.health_status import Status
from ..facts.records import DeathRecord, RestartReset, StreakCleared
from ..facts.runs import Hindrance
from ..messages import Budget, WorkerDied, WorkerFailed
from ..rules.restarts import (
    DEFAULT_FAILURE,
    Circumstances,
    Decision,
    Limit,
    RestartState,
    budget,
    decide,
)
from ..spec.policies.stop_policy import Urgency
from .after_death import held_work
from .after_death.aftermath import claims_after_death
from .restart_wait import back_off, is_up
from .worker import (
    Announce,
    BackingOff,
    CancelTimers,
    Effect,
    Failed,
    Halt,
    Idle,
    KeepRecord,
    OpenDeath,
    ReleaseWork,
    ReportFailed,
    Rest,
    SupervisedWorker,
    WorkerStep,
    World,
)

_RUN_FAILED = "the run failed: "


def decision_on(worker: SupervisedWorker, death: Death, world: World) -> Decision:
    """What the worker's own policy says."""
    decision = decide(worker.spec.restart, worker.restarts, death, circumstances(worker, world))
    return decision if worker.spec.schedule is None else _in_run(worker, decision)


def _in_run(worker: SupervisedWorker, decision: Decision) -> Decision:
    """The decision for a scheduled worker: it is never given up, only the run is."""
    table = worker.timetable
    if decision.done or table is None or table.current is None:
        return decision
    if table.current.reason is Hindrance.TIMEOUT:
        return Decision(
            action=Action.NONE, reason=f"not tried again: {table.current.detail}", state=decision.state
        )
    if decision.action is not Action.MARK_FAILED:
        return decision
    return replace(
        decision, action=Action.NONE, failure_reason=None, reason=f"{_RUN_FAILED}{decision.reason}"
    )


def circumstances(worker: SupervisedWorker, world: World) -> Circumstances:
    """What the decision on a death depends on beside the policy and the counters."""
    return Circumstances(
        now_ms=world.now_ms,
        stopping=world.stopping,
        paused=world.paused,
        held=world.held,
        chance=world.chance,
        is_task=worker.spec.is_task,
    )


def died(
    worker: SupervisedWorker,
    death: Death,
    world: World,
    decision: Decision | None = None,
    first: tuple[Effect, ...] = (),
) -> WorkerStep:
    """A death, once per incarnation: decide, write it down, then act.

    Args:
        worker: the worker before its death.
        death: its death.
        world: the moment of it.
        decision: the decision of its groups, if it is in any.
        first: what its groups persist before it, and announce after it, in the same transaction.
    """
    if not is_up(worker, death.generation):
        return WorkerStep(worker)
    counted = worker.restarts
    decision = decision or decision_on(worker, death, world)
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
    record = death_record(death, decision, world.wall_ms, _version(death, world), worker.spec.cwd)
    event = _died_event(
        death, decision, budget(worker.spec.restart, worker.restarts, world.now_ms), record.bundle
    )
    news = [each for each in first if isinstance(each, Announce)]
    kept = [each for each in first if not isinstance(each, Announce)]
    effects: list[Effect] = [*kept, CancelTimers(), KeepRecord(record), Announce(event), *news]
    if release is not None and not alive:
        effects.append(ReleaseWork(release))
    effects += _cleared(worker.id, decision, counted, world.wall_ms)
    if alive:
        # Taken for dead while it still runs: it must be gone before another one starts.
        effects.append(Halt(death.generation, Urgency.FIRM, hung=death.cause in HUNG))
    else:
        effects += claims_after_death(worker, death)
    step = _after_death(worker, death, decision, record, world)
    return WorkerStep(step.worker, (*effects, *step.effects))


def _cleared(id_: str, decision: Decision, before: RestartState, wall_ms: int) -> Iterator[KeepRecord]:
    """What is persisted of counters that this death clears."""
    if decision.streak_cleared and decision.action is Action.NOTIFY_ONLY:
        # The death's own record changes counters only where it counts or fails.
        yield KeepRecord(StreakCleared(id_, wall_ms))
    if decision.done and before != RestartState():
        yield KeepRecord(RestartReset(id_, wall_ms))


def _version(death: Death, world: World) -> str | None:
    """The version that died: as it was started, or if that is not known, as it was last read."""
    started = None if death.remains is None else death.remains.fingerprint.version
    return started or world.version


def death_record(
    death: Death, decision: Decision, wall_ms: int, version: str | None = None, cwd: str | None = None
) -> DeathRecord:
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
        bundle=bundle_of(death, wall_ms, death.exit, death.remains, cwd=cwd),
        version=version,
    )


def _after_death(
    worker: SupervisedWorker, death: Death, decision: Decision, record: DeathRecord, world: World
) -> WorkerStep:
    match decision.action:
        case Action.RESTART | Action.RESTART_UNCOUNTED:
            phase = BackingOff(
                record,
                decided_ms=world.now_ms,
                due_ms=world.now_ms + decision.delay_ms,
                attempt=decision.state.restart_count,
                elapsed=decision.delay_ms == 0,
            )
            return back_off(replace(worker, phase=phase), phase, world)
        case Action.MARK_FAILED:
            reason = decision.failure_reason or DEFAULT_FAILURE
            failed = replace(worker, phase=Failed(reason, record.version), status=Status.FAILED)
            limit = decision.limit or Limit("")
            event = WorkerFailed(worker.id, death.generation, reason, limit.name, limit.used, limit.allowed)
            return WorkerStep(failed, (ReportFailed(), Announce(event)))
        case Action.HELD:
            return WorkerStep(replace(worker, phase=Idle(Rest.HELD, decision.reason)))
        case Action.NOTIFY_ONLY | Action.NONE:
            return WorkerStep(replace(worker, phase=_at_rest(death, decision, world)))


def _at_rest(death: Death, decision: Decision, world: World) -> Idle:
    """What becomes of one that is not brought back."""
    if decision.done:
        return Idle(Rest.DONE, f"finished: {death}")
    if world.paused or world.stopping:
        rest = Rest.PAUSED if world.paused else Rest.STOPPED
    elif decision.action is Action.NONE and decision.exhausted:
        return Idle(Rest.LEFT, decision.reason.removeprefix(_RUN_FAILED))
    elif decision.action is Action.NONE and death.ended_well:
        return Idle(Rest.DONE, f"finished: {death}")
    else:
        rest = Rest.LEFT
    return Idle(rest, f"{death.summary}; {decision.reason}")


def _died_event(death: Death, decision: Decision, left: Budget, bundle: Bundle | None) -> WorkerDied:
    return WorkerDied(
        death,
        str(decision.action),
        decision.reason,
        decision.delay_ms / 1000,
        decision.state.restart_count,
        decision.state.streak_count,
        left,
        None if bundle is None else bundle.finding,
        None if bundle is None else bundle.confidence,
        death.last_error,
        decision.exhausted,
        decision.done,
    )
