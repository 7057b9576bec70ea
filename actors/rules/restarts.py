"""Pure: whether a dead worker is started again, when, and what that does to its budget.

    death ─▶ task done? ─▶ stopping? ─▶ paused? ─▶ restart wanted at all? ─▶ not counted by its exit
    code? ─▶ never ready, with a budget of its own? ─▶ clear the streak after sustained health ─▶
    lifetime ─▶ window ─▶ consecutive ─▶ restart after delay(streak)

Times are integer milliseconds on any one timeline; only differences
matter. Randomness is passed in as a number. Nothing here reads a clock or has side effects.
"""

from __future__ import annotations

import math

import msgspec
from msgspec.structs import replace

from ..deaths.death import Action, Cause, Death, signal_name
from ..messages import Budget
from ..spec.policies.restart_policy import OnExhausted, RestartOn, RestartPolicy, WindowMode, numbers

DEFAULT_FAILURE = "Restart limit exceeded"
UNCOUNTED_APART_MS = 1000
"""How far apart the starts of a worker are at least that exits with one of its `uncounted_exit_codes`."""


class RestartState(msgspec.Struct, frozen=True):
    """The restart counters of a worker."""

    restart_count: int = 0
    """Over the worker's whole life; only a reset clears it."""
    streak_count: int = 0
    """Drives delay and window; sustained health clears it."""
    last_restart_ms: int | None = None
    deaths_ms: tuple[int, ...] = ()
    """Recent deaths, for the sliding window only."""
    boot_failures: int = 0
    """Restarts in a row after deaths before it was ready, if these have a budget of their own."""


class Limit(msgspec.Struct, frozen=True):
    """A limit that is reached."""

    name: str
    """`lifetime`, `window`, `consecutive`, `boot`, `exit_code` or `group`."""
    used: int | None = None
    allowed: int | None = None


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """The decision on one death, and the counters after it."""

    action: Action
    reason: str
    state: RestartState
    delay_ms: int = 0
    failure_reason: str | None = None
    exhausted: bool = False
    limit: Limit | None = None
    """The limit that is reached, if one is."""
    streak_cleared: bool = False
    """Sustained health had cleared the streak before this death was counted."""
    done: bool = False
    """It completed a task; the next execution of it begins with cleared counters."""

    @property
    def counted(self) -> bool:
        """Whether this death used a restart."""
        return self.action is Action.RESTART


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """The context of a decision: the time, and what prevents a restart."""

    now_ms: int
    stopping: bool = False
    paused: bool = False
    held: str | None = None
    """Why a breaker holds restarts back, if it does."""
    chance: float = 0.0
    """A number from 0 up to but not including 1, for the jitter."""
    is_task: bool = False
    """The process was meant to end: with success it is done, whatever `restart_on` says."""


def decide(policy: RestartPolicy, state: RestartState, death: Death, around: Circumstances) -> Decision:
    """Decide on a death; depends on the arguments alone."""
    death = with_success_codes(policy, death)
    if around.is_task and death.ended_well:
        return Decision(action=Action.NONE, reason="done", state=RestartState(), done=True)
    if around.stopping:
        return _leave(state, "not restarted: stop requested")
    before, state = state, _with_death(policy, state, around.now_ms)
    if around.paused:
        return _leave(state, "not restarted: paused")
    if not policy.enabled:
        return Decision(action=Action.NOTIFY_ONLY, reason="automatic restart is off", state=state)
    unwanted = _unwanted(policy, death)
    if unwanted is not None:
        return _leave(state, unwanted)
    if death.exit.code is not None and death.exit.code in policy.give_up_exit_codes:
        why = f"exit code {death.exit.code} is in give_up_exit_codes"
        return _exhausted(policy, state, why, Limit("exit_code"), death)
    if around.held is not None:
        return Decision(action=Action.HELD, reason=f"held back: {around.held}", state=before)
    return _uncounted(policy, before, death, around) or _counted(policy, state, death, around)


def _counted(policy: RestartPolicy, state: RestartState, death: Death, around: Circumstances) -> Decision:
    rested = _sustained(policy, death)
    state = replace(state, boot_failures=0, streak_count=0 if rested else state.streak_count)
    spent = _spent_limit(policy, state, around.now_ms)
    if spent is not None:
        return replace(_exhausted(policy, state, *spent, death), streak_cleared=rested)
    return replace(restarted(policy, state, around), streak_cleared=rested)


def _uncounted(
    policy: RestartPolicy, state: RestartState, death: Death, around: Circumstances
) -> Decision | None:
    """The decision on a death that the usual limits do not count; None if they do."""
    if death.cause is Cause.EXITED and death.exit.code in policy.uncounted_exit_codes:
        # A program that exits so as soon as it starts must not take all of the machine.
        delay_ms = max(0, UNCOUNTED_APART_MS - death.uptime_ms)
        reason = f"exit code {death.exit.code} is in uncounted_exit_codes"
        return Decision(action=Action.RESTART_UNCOUNTED, reason=reason, state=state, delay_ms=delay_ms)
    most, used = policy.max_boot_failures, state.boot_failures
    if most is None or death.was_ready:
        return None
    if used >= most:
        why = f"{_many(used, 'restart')} in a row before it was ready (limit {most})"
        return _exhausted(policy, state, why, Limit("boot", used, most), death)
    delay = delay_s(policy, used, around.chance)
    return Decision(
        action=Action.RESTART_UNCOUNTED,
        reason=f"it was not ready yet: boot failure {used + 1} of {most}, {delay:g}s backoff",
        state=replace(state, boot_failures=used + 1),
        delay_ms=round(delay * 1000),
    )


def with_success_codes(policy: RestartPolicy, death: Death) -> Death:
    """The death, with what the policy says about its exit code."""
    if not policy.success_exit_codes or death.exit.code not in policy.success_exit_codes:
        return death
    return replace(death, counts_as_success=True)


def delay_s(policy: RestartPolicy, streak: int, chance: float = 0.0) -> float:
    """The delay before restart number `streak` in a row, counted from 0."""
    if policy.initial_delay_s == 0.0 or (policy.immediate_first and streak <= 0):
        return policy.min_delay_s
    exponent = max(0, streak - (1 if policy.immediate_first else 0))
    grown = min(_power(policy.multiplier, exponent) * policy.initial_delay_s, policy.max_delay_s)
    return max(grown * (1.0 - policy.jitter * chance), policy.min_delay_s)


def cleared_streak(state: RestartState) -> RestartState:
    """The counters after sustained health: the lifetime count stays."""
    return replace(state, streak_count=0)


def _power(base: float, exponent: int) -> float:
    # The exponent is clamped before the power: 2.0 ** 1024 overflows. Past e^300 every cap wins.
    if base <= 1.0:
        return 1.0
    return base ** min(exponent, max(1, math.floor(300 / math.log(base))))


def _with_death(policy: RestartPolicy, state: RestartState, now_ms: int) -> RestartState:
    if policy.window_mode is not WindowMode.SLIDING:
        return state
    window_ms = round(policy.window_s * 1000)
    recent = tuple(at for at in state.deaths_ms if now_ms - at < window_ms)
    return replace(state, deaths_ms=(*recent, now_ms))


def _unwanted(policy: RestartPolicy, death: Death) -> str | None:
    """Why it is not restarted, whatever is left of its budget; None if it may be."""
    if death.cause is Cause.SIGNALLED and death.exit.signal is not None:
        if death.exit.signal in numbers(policy.no_restart_signals):
            return f"not restarted: {signal_name(death.exit.signal)} is in no_restart_signals"
        if death.exit.signal in numbers(policy.restart_on_signals):
            return None
    never = policy.restart_on is RestartOn.NEVER
    if never or (policy.restart_on is RestartOn.ON_FAILURE and death.ended_well):
        return f"not restarted (restart_on = {policy.restart_on.value})"
    return None


def _sustained(policy: RestartPolicy, death: Death) -> bool:
    after = policy.reset_after_healthy_s
    # Even with 0 s, a worker that never was healthy has not sustained it.
    return after is not None and death.healthy_for_ms >= max(1, after * 1000)


def _spent_limit(policy: RestartPolicy, state: RestartState, now_ms: int) -> tuple[str, Limit] | None:
    """The first exhausted limit, in words and in numbers; None while budget is left."""
    most, used = policy.max_lifetime, state.restart_count
    if most is not None and used >= most:
        return f"{_many(used, 'restart')} in its lifetime (limit {most})", Limit("lifetime", used, most)
    most, used = policy.max_in_window, _restarts_in_window(policy, state, now_ms)
    if most is not None and used >= most:
        return f"{_many(most, 'restart')} in {window_words(policy.window_s)}", Limit("window", used, most)
    most, used = policy.max_consecutive, state.streak_count
    if most is not None and used >= most:
        return f"{_many(used, 'restart')} in a row (limit {most})", Limit("consecutive", used, most)
    return None


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def window_words(seconds: float) -> str:
    """The length of a window of time in words."""
    if seconds >= 60 and seconds % 60 == 0:
        return _many(round(seconds / 60), "minute")
    return f"{seconds:g} seconds"


def _restarts_in_window(policy: RestartPolicy, state: RestartState, now_ms: int) -> int:
    """How many restarts of the short-term limit were used before the death that is being decided."""
    if policy.window_mode is WindowMode.SLIDING:
        return _deaths_in_window(policy, state, now_ms) - 1
    return used_in_window(policy, state, now_ms)


def _deaths_in_window(policy: RestartPolicy, state: RestartState, now_ms: int) -> int:
    window_ms = policy.window_s * 1000
    return sum(1 for at in state.deaths_ms if now_ms - at < window_ms)


def used_in_window(policy: RestartPolicy, state: RestartState, now_ms: int) -> int:
    """How many restarts of the short-term limit are used."""
    window_ms = policy.window_s * 1000
    if policy.window_mode is WindowMode.SLIDING:
        deaths = _deaths_in_window(policy, state, now_ms)
        # The death at which the worker was given up had no restart.
        return deaths if policy.max_in_window is None else min(deaths, policy.max_in_window)
    if state.last_restart_ms is None or now_ms - state.last_restart_ms >= window_ms:
        return 0
    return state.streak_count


def budget(policy: RestartPolicy, state: RestartState, now_ms: int) -> Budget:
    """How much of each limit is used."""
    return Budget(
        in_window=used_in_window(policy, state, now_ms),
        max_in_window=policy.max_in_window,
        window_s=policy.window_s,
        lifetime=state.restart_count,
        max_lifetime=policy.max_lifetime,
        consecutive=state.streak_count,
        max_consecutive=policy.max_consecutive,
        boot_failures=state.boot_failures,
        max_boot_failures=policy.max_boot_failures,
    )


def restarted(policy: RestartPolicy, state: RestartState, around: Circumstances) -> Decision:
    """A restart after the next delay, counted."""
    delay = delay_s(policy, state.streak_count, around.chance)
    number = state.restart_count + 1
    return Decision(
        action=Action.RESTART,
        reason=f"Restart #{number} with {delay:g}s backoff",
        delay_ms=round(delay * 1000),
        state=replace(
            state,
            restart_count=number,
            streak_count=state.streak_count + 1,
            last_restart_ms=around.now_ms,
        ),
    )


def _exhausted(policy: RestartPolicy, state: RestartState, why: str, limit: Limit, death: Death) -> Decision:
    reason = f"{why}; last death: {death.summary}"
    if policy.on_exhausted is OnExhausted.NOTIFY_ONLY:
        return Decision(action=Action.NOTIFY_ONLY, reason=reason, state=state, exhausted=True, limit=limit)
    return Decision(
        action=Action.MARK_FAILED,
        reason=reason,
        failure_reason=reason,
        state=state,
        exhausted=True,
        limit=limit,
    )


def _leave(state: RestartState, reason: str) -> Decision:
    return Decision(action=Action.NONE, reason=reason, state=state)
