"""Pure: a circuit breaker for workers with a shared dependency.

    closed ─ k workers die within the window, or the probe fails ─▶ open
    open ─ the wait is over, and the probe (if there is one) passes ─▶ half open: one canary
    half open ─ the canary dies ─▶ open, with a longer wait for the next canary
    half open ─ the canary takes too long ─▶ open: the next canary starts at once
    half open ─ the canary is healthy for long enough ─▶ closed: all restart at once

While it is not closed, deaths are recorded but not counted, and only the canary restarts.
Times are integer milliseconds on one timeline; nothing here reads a clock.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from ..spec.policies.breaker_policy import BreakerPolicy

# ── states ───────────────────────────────────────────────────────────────────────────────


class Closed(msgspec.Struct, frozen=True, tag=True):
    """No outage is known."""

    deaths: tuple[tuple[int, str], ...] = ()
    """Recent deaths, oldest first."""


class Open(msgspec.Struct, frozen=True, tag=True):
    """Restarts are held until a canary may try."""

    since_ms: int
    due_ms: int
    why: str
    attempt: int = 0
    """How many canaries have failed."""


class HalfOpen(msgspec.Struct, frozen=True, tag=True):
    """One worker is started as the canary."""

    since_ms: int
    why: str
    canary: str
    attempt: int
    until_ms: int
    """When the next canary starts, unless this one is healthy by then."""
    healthy_ms: int | None = None
    """When the canary became healthy."""


State = Closed | Open | HalfOpen

# ── what happens ─────────────────────────────────────────────────────────────────────────


class Died(msgspec.Struct, frozen=True):
    """A worker of this breaker died."""

    component_id: str


class HealthChanged(msgspec.Struct, frozen=True):
    """A worker's health changed."""

    component_id: str
    healthy: bool


class ProbeEnded(msgspec.Struct, frozen=True):
    """The probe has a result; `wrong` is None if it passed."""

    wrong: str | None


class WaitElapsed(msgspec.Struct, frozen=True):
    """A wait may be over; `held` are the candidates for the canary."""

    held: tuple[str, ...]
    trial_ms: int
    """How long the canary may take."""


class WorkerLeft(msgspec.Struct, frozen=True):
    """A worker was stopped, paused, given up or removed."""

    component_id: str


Trigger = Died | HealthChanged | ProbeEnded | WaitElapsed | WorkerLeft


def advance(state: State, trigger: Trigger, policy: BreakerPolicy, now_ms: int) -> State:
    """The next state; the caller acts on the difference."""
    match state:
        case Closed():
            return _closed(state, trigger, policy, now_ms)
        case Open():
            return _open(state, trigger, policy, now_ms)
        case HalfOpen():
            return _half_open(state, trigger, policy, now_ms)


def next_look_ms(state: State, policy: BreakerPolicy) -> int | None:
    """When time alone may change the state; None if it cannot."""
    match state:
        case Open(due_ms=due_ms):
            return due_ms
        case HalfOpen(healthy_ms=int(healthy_ms)):
            return healthy_ms + _ms(policy.hold_s)
        case HalfOpen(until_ms=until_ms):
            return until_ms
        case _:
            return None


def holds(state: State, component_id: str) -> str | None:
    """Why a worker must not be restarted now; None if it may."""
    match state:
        case Open(why=why):
            return why
        case HalfOpen(canary=canary, why=why) if canary != component_id:
            return why
        case _:
            return None


def _closed(state: Closed, trigger: Trigger, policy: BreakerPolicy, now_ms: int) -> State:
    match trigger:
        case Died(component_id=id_):
            since = now_ms - _ms(policy.window_s)
            recent = tuple((at, who) for at, who in state.deaths if at > since and who != id_)
            recent = (*recent, (now_ms, id_))
            if policy.deaths is None or len(recent) < policy.deaths:
                return Closed(recent)
            return _opened(policy, now_ms, f"{len(recent)} workers died within {policy.window_s:g} s")
        case ProbeEnded(wrong=str(wrong)):
            return _opened(policy, now_ms, f"the probe failed: {wrong}")
        case _:
            return state


def _open(state: Open, trigger: Trigger, policy: BreakerPolicy, now_ms: int) -> State:
    match trigger:
        case WaitElapsed(held=held, trial_ms=trial_ms) if now_ms >= state.due_ms:
            if not held:  # no candidate: all of them run or were stopped
                return Closed()
            # In turn: one broken worker must not block all others.
            canary = held[state.attempt % len(held)]
            return HalfOpen(state.since_ms, state.why, canary, state.attempt, now_ms + trial_ms)
        case ProbeEnded(wrong=str(wrong)):
            # The dependency is still unavailable: a canary would only die.
            wait = _ms(policy.probe_interval_s)
            return replace(state, due_ms=max(state.due_ms, now_ms + wait), why=f"the probe failed: {wrong}")
        case _:
            return state


def _half_open(state: HalfOpen, trigger: Trigger, policy: BreakerPolicy, now_ms: int) -> State:
    match trigger:
        case Died(component_id=id_) if id_ == state.canary:
            delay = min(policy.canary_delay_s * 2 ** min(state.attempt + 1, 30), policy.canary_max_delay_s)
            return Open(state.since_ms, now_ms + _ms(delay), state.why, state.attempt + 1)
        case WorkerLeft(component_id=id_) if id_ == state.canary:
            return Open(state.since_ms, now_ms, state.why, state.attempt)
        case HealthChanged(component_id=id_, healthy=healthy) if id_ == state.canary:
            return _or_next(replace(state, healthy_ms=now_ms if healthy else None), now_ms)
        case WaitElapsed() if state.healthy_ms is not None and now_ms >= state.healthy_ms + _ms(
            policy.hold_s
        ):
            return Closed()
        case WaitElapsed():
            return _or_next(state, now_ms)
        case _:
            return state


def _or_next(state: HalfOpen, now_ms: int) -> State:
    """The trial continues, unless it took too long."""
    if state.healthy_ms is not None or now_ms < state.until_ms:
        return state
    return Open(state.since_ms, now_ms, state.why, state.attempt + 1)


def _opened(policy: BreakerPolicy, now_ms: int, why: str) -> Open:
    return Open(now_ms, now_ms + _ms(policy.canary_delay_s), why)


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
