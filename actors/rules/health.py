"""Pure: the health of one incarnation of a worker.

    pending ──healthy frame──▶ healthy ◀──healthy frame── unhealthy
       │                          │  └──one miss──────────▶ │
       │      recovering frame    ▼                         │
       └───────────────────▶ recovering ◀───────────────────┘
       └─ startup timeout ─┐      │ recovery timeout        │ the last miss
                           ▼      ▼                         ▼
                          dead ◀── also from anywhere: exit, closed channel, bad protocol
                           └── given up ──▶ failed

Death is reported once; only giving up leads out of dead, and nothing leads out of failed.
Times are seconds of a monotonic clock, passed in by the caller.
"""

from __future__ import annotations

import msgspec

from ..deaths.death import Cause, Exit
from ..facts.frames import Frame
from ..facts.health_status import Status
from ..spec.worker_spec import HealthPolicy


class Pending(msgspec.Struct, frozen=True):
    """Started, without a healthy frame yet."""

    since: float
    status = Status.PENDING


class Healthy(msgspec.Struct, frozen=True):
    """The last healthy frame is recent."""

    since: float
    seen: float
    status = Status.HEALTHY


class Unhealthy(msgspec.Struct, frozen=True):
    """Silent for at least one interval, or unhealthy by its own report."""

    seen: float
    misses: int
    status = Status.UNHEALTHY


class Recovering(msgspec.Struct, frozen=True):
    """The worker asked for time; the whole recovery is bounded, however often it asks again."""

    entered: float
    until: float
    status = Status.RECOVERING


class Dead(msgspec.Struct, frozen=True):
    """Ended, or about to be ended."""

    status = Status.DEAD


class Failed(msgspec.Struct, frozen=True):
    """Given up until an operator resets it."""

    status = Status.FAILED


State = Pending | Healthy | Unhealthy | Recovering | Dead | Failed


class Reported(msgspec.Struct, frozen=True):
    """A frame arrived."""

    frame: Frame


class Elapsed(msgspec.Struct, frozen=True):
    """Time passed: check the deadline."""


class Launched(msgspec.Struct, frozen=True):
    """A worker without a channel runs: that is all that is known of its health."""


class Lost(msgspec.Struct, frozen=True):
    """The process ended, its channel closed, or it broke the protocol."""

    cause: Cause
    exit: Exit = Exit()
    detail: str = ""


class GivenUp(msgspec.Struct, frozen=True):
    """The supervisor will not start it again."""


class Granted(msgspec.Struct, frozen=True):
    """The monitor was away, or the worker paused: the silence until now does not count."""


Trigger = Reported | Elapsed | Launched | Lost | GivenUp | Granted


class Change(msgspec.Struct, frozen=True):
    """One status change, with what led to it."""

    old: Status
    new: Status
    cause: Cause | None = None
    exit: Exit = Exit()
    detail: str = ""
    misses: int = 0
    recover_for_s: float | None = None
    """The recovery time that the worker asked for, before it was clamped."""


class Step(msgspec.Struct, frozen=True):
    """The state after a trigger, and the change to report, if any."""

    state: State
    change: Change | None = None


def advance(state: State, trigger: Trigger, policy: HealthPolicy, now: float) -> Step:
    """What a trigger does to a worker's health."""
    match state, trigger:
        case Failed(), _:
            return Step(state)
        case _, GivenUp():
            return Step(Failed(), Change(state.status, Status.FAILED))
        case Dead(), _:
            return Step(state)
        case _, Lost(cause=cause, exit=exit_, detail=detail):
            return Step(Dead(), Change(state.status, Status.DEAD, cause, exit_, detail))
        case _, Granted():
            return Step(_granted(state, policy, now))
        case Pending(), Launched():
            return _to(state, Healthy(now, now))
        case _, Launched():
            return Step(state)
        case _, Reported(frame=frame):
            return _reported(state, frame, policy, now)
        case _, Elapsed():
            return _elapsed(state, policy, now)


def deadline(state: State, policy: HealthPolicy) -> float | None:
    """When time alone changes this state next; None: never."""
    match state:
        case Pending(since=since):
            return since + policy.startup_timeout_s
        case Recovering(until=until):
            return until
        case Healthy(seen=seen):
            return None if policy.staleness_s is None else seen + policy.staleness_s
        case Unhealthy(seen=seen, misses=misses):
            return None if policy.staleness_s is None else seen + policy.staleness_s * (misses + 1)
        case Dead() | Failed():
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


def _reported(state: State, frame: Frame, policy: HealthPolicy, now: float) -> Step:
    match frame.status:
        case "healthy":
            since = state.since if isinstance(state, Healthy) else now
            return _to(state, Healthy(since, now))
        case "recovering" if policy.recovery_max_s is not None:
            return _recovering(state, frame.recover_for_s, policy, now)
        case "unhealthy" | "recovering" if isinstance(state, Healthy):
            # Not a sign of health: misses are counted from the last healthy frame.
            return _to(state, Unhealthy(state.seen, 0), frame.detail)
        case _:
            return Step(state)


def _recovering(state: State, asked: float | None, policy: HealthPolicy, now: float) -> Step:
    assert policy.recovery_max_s is not None
    entered = state.entered if isinstance(state, Recovering) else now
    until = min(now + clamp_recovery(asked, policy), entered + policy.recovery_max_s)
    new = Recovering(entered, until)
    if isinstance(state, Recovering):
        return Step(new)
    return Step(new, Change(state.status, new.status, recover_for_s=asked))


def _elapsed(state: State, policy: HealthPolicy, now: float) -> Step:
    due = deadline(state, policy)
    if due is None or now < due:
        return Step(state)
    match state:
        case Pending():
            detail = f"not healthy within {policy.startup_timeout_s:g} s"
            return Step(Dead(), Change(state.status, Status.DEAD, Cause.STARTUP_TIMEOUT, detail=detail))
        case Recovering(entered=entered):
            detail = f"still recovering after {now - entered:g} s"
            return Step(Dead(), Change(state.status, Status.DEAD, Cause.RECOVERY_TIMEOUT, detail=detail))
        case Healthy(seen=seen) | Unhealthy(seen=seen):
            return _missed(state, seen, policy, now)
        case _:
            return Step(state)


def _missed(state: State, seen: float, policy: HealthPolicy, now: float) -> Step:
    assert policy.staleness_s is not None
    # A deadline has passed, so there is one miss more, however the division is rounded; and the next
    # deadline must lie in the future, or the caller's timer would fire at once.
    before = state.misses if isinstance(state, Unhealthy) else 0
    misses = max(before + 1, int((now - seen) / policy.staleness_s))
    if now >= seen + policy.staleness_s * (misses + 1):
        misses += 1
    if misses < policy.max_misses:
        change = Change(state.status, Status.UNHEALTHY, misses=misses)
        return Step(Unhealthy(seen, misses), None if isinstance(state, Unhealthy) else change)
    detail = f"{misses} heartbeats missed, silent for {now - seen:.3g} s"
    return Step(Dead(), Change(state.status, Status.DEAD, Cause.HEARTBEAT_LOST, detail=detail, misses=misses))


def _granted(state: State, policy: HealthPolicy, now: float) -> State:
    match state:
        case Pending():
            return Pending(now)
        case Healthy(since=since):
            return Healthy(since, now)
        case Unhealthy():
            return Unhealthy(now, misses=0)
        case Recovering(entered=entered, until=until):
            grace = max(0.0, now + (policy.recovery_min_s or 0.0) - until)
            return Recovering(entered + grace, until + grace)
        case Dead() | Failed():
            return state


def _to(state: State, new: Healthy | Unhealthy, detail: str = "") -> Step:
    if new.status is state.status:
        return Step(new)
    return Step(new, Change(state.status, new.status, detail=detail))
