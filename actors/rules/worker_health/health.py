"""Pure: the health of one incarnation of a worker.

    pending ──all it awaits──▶ healthy ◀──healthy frame── unhealthy
       │                          │  └──one miss──────────▶ │
       │      recovering frame    ▼                         │
       └───────────────────▶ recovering ◀───────────────────┘
       └─ startup timeout ─┐      │ recovery timeout        │ the last miss
                           ▼      ▼                         ▼
                          dead ◀── also from anywhere: exit, closed channel, bad protocol
                           └── given up ──▶ failed

A start awaits its conditions (`readiness`); most often that is the first healthy frame. A worker that
recovers before it was ready goes back to pending.
Death is reported once; only giving up leads out of dead, and nothing leads out of failed.
Times are seconds of a monotonic clock, passed in by the caller.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ...deaths.death import Cause
from ...facts.frames import Frame
from ...facts.health_status import Status
from ...facts.notify_datagram import NotifyDatagram
from ...spec.policies.health_policy import HealthPolicy
from ...spec.policies.ready_policy import Condition, ReadyPolicy
from .health_states import (
    Checked,
    Dead,
    Elapsed,
    Extended,
    GivenUp,
    Granted,
    HealthChange,
    HealthStep,
    Healthy,
    Launched,
    Lost,
    MarkedFailed,
    Pending,
    Probed,
    Recovering,
    Reported,
    State,
    Trigger,
    Unhealthy,
)
from .readiness import (
    FRAME,
    awaited,
    lifetime_s,
    too_late,
    with_words,
    without,
)


def pending(now: float, ready: ReadyPolicy | None, reports_health: bool) -> Pending:
    """The state of a new incarnation."""
    return Pending(now, awaited(ready, reports_health), lifetime_s(ready))


def triggers_of(notice: NotifyDatagram) -> Iterator[Trigger]:
    """What a datagram to the worker's notify socket means for its health."""
    if notice.extend_s is not None:
        yield Extended(notice.extend_s)
    if notice.is_ready:
        yield Checked(Condition.NOTIFY, is_met=True)
    elif notice.status is not None:
        yield Checked(Condition.NOTIFY, is_met=False, words=notice.status)
    if notice.gives_up:
        yield Lost(Cause.UNHEALTHY, detail=notice.status or "WATCHDOG=trigger")


def advance(state: State, trigger: Trigger, policy: HealthPolicy, now: float) -> HealthStep:
    """What a trigger does to a worker's health."""
    match state, trigger:
        case MarkedFailed(), _:
            return HealthStep(state)
        case _, GivenUp():
            return HealthStep(MarkedFailed(), HealthChange(state.status, Status.FAILED))
        case Dead(), _:
            return HealthStep(state)
        case _, Lost(cause=cause, exit=exit_, detail=detail):
            return HealthStep(Dead(), HealthChange(state.status, Status.DEAD, cause, exit_, detail))
        case _, Granted():
            return HealthStep(_granted(state, policy, now))
        case Pending(), Launched():
            return _settled(state, msgspec.structs.replace(state, started=_first(state.started, now)), now)
        case Pending(), Checked():
            return _settled(state, _checked(state, trigger), now)
        case Recovering(start=Pending() as start), Checked():
            return HealthStep(msgspec.structs.replace(state, start=_checked(start, trigger)))
        case Pending(since=since), Extended(seconds=seconds):
            until = max(since + policy.startup_timeout_s, now + seconds)
            return HealthStep(msgspec.structs.replace(state, since=until - policy.startup_timeout_s))
        case Healthy() | Unhealthy(), Probed():
            return _passed(state, now) if trigger.is_good else _failed(state, trigger)
        case _, Launched() | Checked() | Extended() | Probed():
            return HealthStep(state)
        case _, Reported(frame=frame):
            return _reported(state, frame, policy, now)
        case _, Elapsed():
            return _elapsed(state, policy, now)


def deadline(state: State, policy: HealthPolicy) -> float | None:
    """When time alone changes this state next; None: never."""
    match state:
        case Pending(since=since, awaits=awaits, ripe=ripe):
            if ripe is None:
                return since + policy.startup_timeout_s
            # A worker that only has to live on is not late.
            return ripe if len(awaits) == 1 else min(ripe, since + policy.startup_timeout_s)
        case Recovering(until=until):
            return until
        case Healthy(seen=seen):
            return None if policy.staleness_s is None else seen + policy.staleness_s
        case Unhealthy(seen=seen, misses=misses):
            return None if policy.staleness_s is None else seen + policy.staleness_s * (misses + 1)
        case Dead() | MarkedFailed():
            return None


def healthy_for(state: State, now: float) -> float:
    """How long a worker has been continuously healthy."""
    return now - state.since if isinstance(state, Healthy) else 0.0


def clamp_recovery(asked: float | None, policy: HealthPolicy) -> float:
    """The time granted for a recovery; a worker that names no time gets the most."""
    assert policy.recovery_min_s is not None and policy.recovery_max_s is not None
    if asked is None:
        return policy.recovery_max_s
    return min(max(asked, policy.recovery_min_s), policy.recovery_max_s)


def _reported(state: State, frame: Frame, policy: HealthPolicy, now: float) -> HealthStep:
    match frame.status:
        case "healthy" if isinstance(state, Pending):
            return _settled(state, _met(state, Condition.FRAME), now)
        case "healthy" if isinstance(state, Recovering) and state.start is not None:
            # The time of the recovery does not count as time of the start.
            resumed = msgspec.structs.replace(state.start, since=state.start.since + now - state.entered)
            return _settled(state, _met(resumed, Condition.FRAME), now)
        case "unhealthy" if isinstance(state, Pending) and state.awaits:
            awaits = (FRAME, *without(state.awaits, Condition.FRAME))
            return HealthStep(msgspec.structs.replace(state, awaits=awaits))
        case "healthy" if isinstance(state, Unhealthy) and state.failing:
            return HealthStep(Unhealthy(now, 0, failed=state.failed, failing=state.failing))
        case "healthy":
            since = state.since if isinstance(state, Healthy) else now
            return _to(state, Healthy(since, now))
        case "recovering" if policy.recovery_max_s is not None:
            return _recovering(state, frame.recover_for_s, policy, now)
        case "unhealthy" | "recovering" if isinstance(state, Healthy):
            # Not a sign of health: misses are counted from the last healthy frame.
            return _to(state, Unhealthy(state.seen, 0, now, frame.detail), frame.detail)
        case "unhealthy" | "recovering" if isinstance(state, Unhealthy):
            return HealthStep(msgspec.structs.replace(state, reported=now, said=frame.detail))
        case _:
            return HealthStep(state)


def _passed(state: Healthy | Unhealthy, now: float) -> HealthStep:
    if not isinstance(state, Unhealthy) or not state.failing:
        return HealthStep(state)
    if state.misses or state.reported is not None:
        return HealthStep(msgspec.structs.replace(state, failed=0, failing=""))
    return _to(state, Healthy(now, state.seen))


def _failed(state: Healthy | Unhealthy, answer: Probed) -> HealthStep:
    before = state if isinstance(state, Unhealthy) else Unhealthy(state.seen, 0)
    # Where failures do not end it, they do not count: the first one after that is the first.
    failed = 0 if answer.most is None else before.failed + 1
    if answer.most is not None and failed >= answer.most:
        often = "a probe failed" if failed == 1 else f"{failed} probes failed in a row"
        change = HealthChange(
            state.status, Status.DEAD, Cause.PROBE_FAILED, detail=f"{often}: {answer.words}"
        )
        return HealthStep(Dead(), change)
    new = msgspec.structs.replace(before, failed=failed, failing=answer.words or "failed")
    return _to(state, new, f"its probe failed: {answer.words}")


def _recovering(state: State, asked: float | None, policy: HealthPolicy, now: float) -> HealthStep:
    assert policy.recovery_max_s is not None
    entered = state.entered if isinstance(state, Recovering) else now
    until = min(now + clamp_recovery(asked, policy), entered + policy.recovery_max_s)
    new = Recovering(entered, until, _start_of(state))
    if isinstance(state, Recovering):
        return HealthStep(new)
    return HealthStep(new, HealthChange(state.status, new.status, recover_for_s=asked))


def _start_of(state: State) -> Pending | None:
    """What a worker that asks for time still awaits, beside the frame that ends its recovery."""
    if isinstance(state, Recovering):
        return state.start
    return state if isinstance(state, Pending) and without(state.awaits, Condition.FRAME) else None


def _checked(state: Pending, look: Checked) -> Pending:
    if look.is_met:
        return _met(state, look.condition)
    return msgspec.structs.replace(state, awaits=with_words(state.awaits, look.condition, look.words))


def _met(state: Pending, condition: Condition) -> Pending:
    return msgspec.structs.replace(state, awaits=without(state.awaits, condition))


def _settled(before: Pending | Recovering, state: Pending, now: float) -> HealthStep:
    """Healthy if nothing else is awaited, else still to become ready."""
    if state.ripe is not None and state.ripe <= now:
        state = _met(state, Condition.AFTER_S)
    new = state if state.awaits else Healthy(now, now)
    return (
        HealthStep(new)
        if new.status is before.status
        else HealthStep(new, HealthChange(before.status, new.status))
    )


def _first(earlier: float | None, now: float) -> float:
    return now if earlier is None else earlier


def _elapsed(state: State, policy: HealthPolicy, now: float) -> HealthStep:
    due = deadline(state, policy)
    if due is None or now < due:
        return HealthStep(state)
    match state:
        case Pending(ripe=ripe) if ripe is not None and ripe <= now:
            return _settled(state, state, now)
        case Pending(awaits=awaits):
            detail = too_late(awaits, policy.startup_timeout_s)
            return HealthStep(
                Dead(), HealthChange(state.status, Status.DEAD, Cause.STARTUP_TIMEOUT, detail=detail)
            )
        case Recovering(entered=entered):
            detail = f"still recovering after {now - entered:g} s"
            return HealthStep(
                Dead(), HealthChange(state.status, Status.DEAD, Cause.RECOVERY_TIMEOUT, detail=detail)
            )
        case Healthy(seen=seen) | Unhealthy(seen=seen):
            return _missed(state, seen, policy, now)
        case _:
            return HealthStep(state)


def _missed(state: State, seen: float, policy: HealthPolicy, now: float) -> HealthStep:
    assert policy.staleness_s is not None
    # A deadline has passed, so there is one miss more, however the division is rounded; and the next
    # deadline must lie in the future, or the caller's timer would fire at once.
    before = state.misses if isinstance(state, Unhealthy) else 0
    misses = max(before + 1, int((now - seen) / policy.staleness_s))
    if now >= seen + policy.staleness_s * (misses + 1):
        misses += 1
    if misses < policy.max_misses:
        change = HealthChange(state.status, Status.UNHEALTHY, misses=misses)
        if isinstance(state, Unhealthy):
            return HealthStep(msgspec.structs.replace(state, misses=misses))
        return HealthStep(Unhealthy(seen, misses), change)
    if (
        isinstance(state, Unhealthy)
        and state.reported is not None
        and now - state.reported < policy.staleness_s
    ):
        said = f": {state.said}" if state.said else ""
        detail = f"for {now - seen:.3g} s{said}"
        return HealthStep(
            Dead(), HealthChange(state.status, Status.DEAD, Cause.UNHEALTHY, detail=detail, misses=misses)
        )
    detail = f"{misses} heartbeats missed, silent for {now - seen:.3g} s"
    return HealthStep(
        Dead(), HealthChange(state.status, Status.DEAD, Cause.HEARTBEAT_LOST, detail=detail, misses=misses)
    )


def _granted(state: State, policy: HealthPolicy, now: float) -> State:
    match state:
        case Pending():
            return msgspec.structs.replace(state, since=now)
        case Healthy(since=since):
            return Healthy(since, now)
        case Unhealthy():
            return msgspec.structs.replace(state, seen=now, misses=0, failed=0)
        case Recovering(entered=entered, until=until):
            grace = max(0.0, now + (policy.recovery_min_s or 0.0) - until)
            return msgspec.structs.replace(state, entered=entered + grace, until=until + grace)
        case Dead() | MarkedFailed():
            return state


def _to(state: State, new: Healthy | Unhealthy, detail: str = "") -> HealthStep:
    if new.status is state.status:
        return HealthStep(new)
    return HealthStep(new, HealthChange(state.status, new.status, detail=detail))
