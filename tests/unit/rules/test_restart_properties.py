"""What holds for every policy, state and death."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.builders import crash, policy

from rekindle.actors.deaths.death import Action, Death
from rekindle.actors.rules.restarts import (
    Circumstances,
    RestartState,
    decide,
    delay_s,
)
from rekindle.actors.spec.policies.restart_policy import RestartOn, RestartPolicy, WindowMode

SECONDS = st.floats(0, 1e6)


LIMITS = st.none() | st.integers(1, 30)


DELAYS = st.tuples(SECONDS, SECONDS).map(sorted)


@st.composite
def policies(draw: st.DrawFn) -> RestartPolicy:
    initial, most = draw(DELAYS)
    return RestartPolicy(
        enabled=draw(st.booleans()) or draw(st.booleans()),
        restart_on=draw(st.sampled_from(RestartOn)),
        max_in_window=draw(LIMITS),
        window_s=draw(st.floats(0.001, 1e6)),
        window_mode=draw(st.sampled_from(WindowMode)),
        max_lifetime=draw(LIMITS),
        max_consecutive=draw(LIMITS),
        initial_delay_s=initial,
        max_delay_s=most,
        min_delay_s=draw(SECONDS),
        multiplier=draw(st.floats(1, 1e300)),
        immediate_first=draw(st.booleans()),
        jitter=draw(st.floats(0, 1)),
        reset_after_healthy_s=draw(st.none() | SECONDS),
    )


DEATHS = st.builds(
    crash,
    code=st.sampled_from([None, 0, 1]),
    signal=st.sampled_from([None, 9]),
    healthy_for_ms=st.integers(0, 10**9),
)


STATES = st.builds(
    RestartState,
    st.integers(0, 40),
    st.integers(0, 40),
    st.none() | st.integers(-(10**9), 10**12),
    st.lists(st.integers(0, 10**9), max_size=5).map(tuple),
)


SURROUNDINGS = st.builds(
    Circumstances,
    now_ms=st.integers(-(10**9), 10**12),
    stopping=st.booleans(),
    paused=st.booleans(),
    chance=st.floats(0, 1, exclude_max=True),
)


CHANCES = st.floats(0, 1, exclude_max=True)


@given(under=policies(), streak=st.integers(-5, 10**6), chance=CHANCES)
def test_a_delay_stays_between_its_floor_and_its_maximum(
    under: RestartPolicy, streak: int, chance: float
) -> None:
    delay = delay_s(under, streak, chance)
    assert under.min_delay_s <= delay <= max(under.max_delay_s, under.min_delay_s)


@given(under=policies(), streak=st.integers(0, 10**6), chance=CHANCES)
def test_jitter_never_makes_a_delay_longer_nor_takes_more_than_its_share(
    under: RestartPolicy, streak: int, chance: float
) -> None:
    whole, delay = delay_s(under, streak), delay_s(under, streak, chance)
    assert whole * (1 - under.jitter) - 1e-6 <= delay <= whole


@given(under=policies(), streak=st.integers(0, 2000))
def test_delays_never_shrink_within_a_streak(under: RestartPolicy, streak: int) -> None:
    assert delay_s(under, streak) <= delay_s(under, streak + 1)


@given(under=policies(), before=STATES, death=DEATHS, around=SURROUNDINGS)
def test_rd_12_a_decision_depends_on_its_inputs_alone(
    under: RestartPolicy, before: RestartState, death: Death, around: Circumstances
) -> None:
    assert decide(under, before, death, around) == decide(under, before, death, around)


@given(under=policies(), before=STATES, death=DEATHS, around=SURROUNDINGS)
def test_a_decision_counts_one_restart_or_none(
    under: RestartPolicy, before: RestartState, death: Death, around: Circumstances
) -> None:
    decision = decide(under, before, death, around)
    assert decision.state.restart_count - before.restart_count == int(decision.counted)
    kept = 0 if decision.streak_cleared else before.streak_count
    assert decision.state.streak_count == kept + int(decision.counted)
    assert decision.delay_ms == 0 or decision.counted


@given(under=policies(), before=STATES, death=DEATHS, around=SURROUNDINGS)
def test_a_decision_against_a_restart_has_a_reason(
    under: RestartPolicy, before: RestartState, death: Death, around: Circumstances
) -> None:
    decision = decide(under, before, death, around)
    assert decision.reason
    assert (decision.failure_reason is not None) == (decision.action is Action.MARK_FAILED)
    assert decision.counted or not (around.stopping or around.paused) or decision.action is Action.NONE


@given(under=policies(), steps=st.lists(st.tuples(st.integers(0, 10**6), DEATHS), max_size=60))
def test_no_limit_is_ever_exceeded(under: RestartPolicy, steps: list[tuple[int, Death]]) -> None:
    counters, now = RestartState(), 0
    for pause_ms, death in steps:
        now += pause_ms
        counters = decide(under, counters, death, Circumstances(now_ms=now)).state
    assert counters.restart_count <= (under.max_lifetime or len(steps))
    assert counters.streak_count <= (under.max_consecutive or len(steps))


@given(steps=st.lists(st.integers(0, 10**6), max_size=60))
def test_a_sliding_window_never_sees_more_restarts_than_it_allows(steps: list[int]) -> None:
    under, counters, now = policy("notify", enabled=True), RestartState(), 0
    restarts: list[int] = []
    for pause_ms in steps:
        now += pause_ms
        decision = decide(under, counters, crash(), Circumstances(now_ms=now))
        counters = decision.state
        restarts += [now] * decision.counted
        assert sum(now - at < 600_000 for at in restarts) < 3
