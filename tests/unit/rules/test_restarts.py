"""The decision on a death: RD-01 to RD-28 as far as they are pure, BO-01 to BO-06."""

from __future__ import annotations

import pytest
from tests.unit.builders import crash, policy, silence

from rekindle.actors.deaths.death import Action, Cause, Death
from rekindle.actors.rules.restarts import (
    Circumstances,
    Decision,
    RestartState,
    budget,
    cleared_streak,
    decide,
    delay_s,
)
from rekindle.actors.spec.policies.restart_policy import RestartOn, RestartPolicy, WindowMode

NOW = 1_000_000_000
"""A moment, in milliseconds."""


def state(count: int = 0, ago_ms: int | None = None, *, streak: int | None = None) -> RestartState:
    """Counters, and how long ago the last restart was."""
    last = None if ago_ms is None else NOW - ago_ms
    return RestartState(
        restart_count=count, streak_count=count if streak is None else streak, last_restart_ms=last
    )


def verdict(
    before: RestartState, death: Death | None = None, under: RestartPolicy | None = None, at_ms: int = NOW
) -> Decision:
    """The decision on a death by exit code 1, under `steady` by default."""
    return decide(under or policy(), before, death or crash(), Circumstances(now_ms=at_ms))


def lives(under: RestartPolicy, deaths_at_s: list[float], *, healthy_for_s: float = 0) -> list[Decision]:
    """The decisions on these deaths, each on what the one before left."""
    decisions: list[Decision] = []
    counters = RestartState()
    for at_s in deaths_at_s:
        death = crash(healthy_for_ms=round(healthy_for_s * 1000))
        decisions.append(verdict(counters, death, under, round(at_s * 1000)))
        counters = decisions[-1].state
    return decisions


def delays(decisions: list[Decision]) -> list[float]:
    """The delays of the restarts, in seconds."""
    return [decision.delay_ms / 1000 for decision in decisions if decision.counted]


# ── The steady preset ────────────────────────────────────────────────────────────────────


def test_rd_01_the_first_death_is_restarted_after_a_second() -> None:
    decision = verdict(state(0))
    assert (decision.action, decision.delay_ms) == (Action.RESTART, 1000)
    assert decision.reason == "Restart #1 with 1s backoff"
    assert decision.state == RestartState(1, 1, NOW)


@pytest.mark.parametrize(
    ("count", "ago_ms", "action", "delay"),
    [
        pytest.param(4, 1_000, Action.RESTART, 16, id="RD-02"),
        pytest.param(5, 120_000, Action.MARK_FAILED, 0, id="RD-03"),
        pytest.param(5, 299_999, Action.MARK_FAILED, 0, id="RD-04 inside"),
        pytest.param(5, 300_000, Action.RESTART, 32, id="RD-04 outside"),
        pytest.param(5, None, Action.RESTART, 32, id="RD-05"),
        pytest.param(19, 400_000, Action.RESTART, 60, id="RD-06 the last one"),
        pytest.param(20, 400_000, Action.MARK_FAILED, 0, id="RD-06"),
        pytest.param(20, None, Action.MARK_FAILED, 0, id="RD-06 at no age"),
        pytest.param(20, 10**12, Action.MARK_FAILED, 0, id="RD-06 at any age"),
        pytest.param(5, -5_000, Action.MARK_FAILED, 0, id="RD-08 the clock stepped back"),
    ],
)
def test_the_steady_limits(count: int, ago_ms: int | None, action: Action, delay: float) -> None:
    decision = verdict(state(count, ago_ms))
    assert (decision.action, decision.delay_ms / 1000) == (action, delay)


def test_rd_03_the_reason_names_the_limit_and_the_last_death() -> None:
    decision = verdict(state(5, 120_000), crash(signal=9))
    assert decision.reason == "5 restarts in 5 minutes; last death: killed by SIGKILL"
    assert decision.failure_reason == decision.reason
    assert decision.exhausted
    assert decision.state == state(5, 120_000)


def test_rd_07_the_lifetime_reason_comes_before_that_of_the_window() -> None:
    reason = verdict(state(20, 1_000)).failure_reason
    assert reason is not None
    assert reason.startswith("20 restarts in its lifetime (limit 20)")


def test_rd_09_a_tight_loop_is_given_up_at_the_sixth_death() -> None:
    at, deaths = 0.0, []
    for delay in (0, 1, 2, 4, 8, 16):
        at += delay + 3
        deaths.append(at)
    decisions = lives(policy(), deaths)
    assert delays(decisions) == [1, 2, 4, 8, 16]
    assert [d.action for d in decisions] == [Action.RESTART] * 5 + [Action.MARK_FAILED]


def test_rd_10_a_crash_every_ten_minutes_is_given_up_at_the_twenty_first() -> None:
    decisions = lives(policy(), [600.0 * n for n in range(21)])
    assert delays(decisions) == [1, 2, 4, 8, 16, 32] + [60] * 14
    assert (decisions[-1].action, decisions[-1].state.restart_count) == (Action.MARK_FAILED, 20)


def test_rd_11_two_deaths_in_a_minute_after_five_long_ago_are_the_end() -> None:
    first = verdict(state(5, 86_400_000))
    second = verdict(first.state, at_ms=NOW + 60_000)
    assert (first.action, first.delay_ms) == (Action.RESTART, 32_000)
    assert second.action is Action.MARK_FAILED


def test_rd_13_configured_limits_are_honoured() -> None:
    tight = policy(max_in_window=2, window_s=60, max_lifetime=3)
    assert verdict(state(2, 59_999), under=tight).reason.startswith("2 restarts in 1 minute;")
    assert verdict(state(2, 60_000), under=tight).action is Action.RESTART
    assert verdict(state(3, 10**9), under=tight).action is Action.MARK_FAILED


@pytest.mark.parametrize(
    ("seconds", "words"), [(60, "1 minute"), (90, "90 seconds"), (0.5, "0.5 seconds"), (3600, "60 minutes")]
)
def test_a_reason_tells_its_window_in_words(seconds: float, words: str) -> None:
    decision = verdict(state(1, 0), under=policy(max_in_window=1, window_s=seconds))
    assert decision.reason.startswith(f"1 restart in {words};")


# ── The notify preset ────────────────────────────────────────────────────────────────────


def test_rd_14_the_third_death_within_ten_minutes_is_only_reported() -> None:
    decisions = lives(policy("notify", enabled=True), [0, 100, 200])
    assert [d.action for d in decisions] == [Action.RESTART, Action.RESTART, Action.NOTIFY_ONLY]
    assert [d.exhausted for d in decisions] == [False, False, True]
    assert decisions[2].reason.startswith("2 restarts in 10 minutes;")


def test_rd_15_by_default_a_death_is_only_reported_and_recorded() -> None:
    decision = verdict(RestartState(), under=policy("notify"))
    assert (decision.action, decision.exhausted) == (Action.NOTIFY_ONLY, False)
    assert decision.state == RestartState(deaths_ms=(NOW,))


def test_rd_16_deaths_age_out_of_the_sliding_window() -> None:
    decisions = lives(policy("notify", enabled=True), [0, 300, 599, 601, 1300])
    assert [d.action for d in decisions[2:]] == [Action.NOTIFY_ONLY, Action.NOTIFY_ONLY, Action.RESTART]
    assert decisions[3].state.deaths_ms == (300_000, 599_000, 601_000)
    assert decisions[4].state.deaths_ms == (1_300_000,)


@pytest.mark.parametrize(("age_ms", "action"), [(599_999, Action.NOTIFY_ONLY), (600_000, Action.RESTART)])
def test_rd_17_a_death_of_exactly_the_windows_age_is_outside(age_ms: int, action: Action) -> None:
    before = RestartState(deaths_ms=(NOW - age_ms, NOW - 1))
    assert verdict(before, under=policy("notify", enabled=True)).action is action


def test_rd_18_a_configured_sliding_window_is_honoured() -> None:
    short = policy("notify", enabled=True, window_s=60)
    before = RestartState(deaths_ms=(NOW - 61_000, NOW - 30_000))
    assert verdict(before, under=short).state.deaths_ms == (NOW - 30_000, NOW)
    assert verdict(before, under=short).action is Action.RESTART


@pytest.mark.parametrize("mode", WindowMode)
def test_max_in_window_is_the_number_of_restarts_in_both_modes(mode: WindowMode) -> None:
    decisions = lives(policy(max_in_window=4, window_mode=mode), [10.0 * n for n in range(5)])
    assert [d.action for d in decisions] == [Action.RESTART] * 4 + [Action.MARK_FAILED]
    assert decisions[4].reason.startswith("4 restarts in 5 minutes;")
    used = budget(policy(max_in_window=4, window_mode=mode), decisions[4].state, 50_000)
    assert (used.in_window, used.max_in_window) == (4, 4)


# ── The plugin preset ────────────────────────────────────────────────────────────────────


def test_rd_19_a_plugin_is_tried_five_times() -> None:
    decisions = lives(policy("plugin"), [10.0 * n for n in range(6)])
    assert delays(decisions) == [0, 1, 2, 4, 8]
    assert (decisions[5].action, decisions[5].state.restart_count) == (Action.MARK_FAILED, 5)
    assert decisions[5].reason.startswith("5 restarts in a row (limit 5)")


def test_rd_20_starts_that_fail_are_attempts_until_the_limit_and_none_more() -> None:
    counters = RestartState()
    for attempt in (1, 2, 3, 3):
        death = crash(cause=Cause.SPAWN_FAILED, code=None)
        counters = verdict(counters, death, policy("plugin", max_consecutive=3)).state
        assert counters.restart_count == attempt


# ── Which deaths are restarted at all ────────────────────────────────────────────────────


def test_rd_21_with_restarts_off_a_death_changes_no_counter() -> None:
    decision = verdict(state(3, 1_000), under=policy(enabled=False))
    assert (decision.action, decision.counted) == (Action.NOTIFY_ONLY, False)
    assert decision.state == state(3, 1_000)


@pytest.mark.parametrize(
    ("restart_on", "death", "restarted"),
    [
        pytest.param(RestartOn.ON_FAILURE, crash(code=0), False, id="RD-22 exit 0"),
        pytest.param(RestartOn.ON_FAILURE, crash(code=1), True, id="RD-22 exit 1"),
        pytest.param(RestartOn.ON_FAILURE, crash(signal=9), True, id="RD-22 signal 9"),
        pytest.param(RestartOn.ON_FAILURE, silence(), True, id="RD-22 hung"),
        pytest.param(RestartOn.ON_FAILURE, crash(code=None), True, id="RD-22 status lost"),
        pytest.param(RestartOn.ON_FAILURE, crash(cause=Cause.RESOURCE_LIMIT, code=0), True, id="too big"),
        pytest.param(RestartOn.ALWAYS, crash(code=0), True, id="RD-23"),
        pytest.param(RestartOn.NEVER, crash(code=1), False, id="F3 never"),
    ],
)
def test_which_deaths_are_restarted(restart_on: RestartOn, death: Death, restarted: bool) -> None:
    decision = verdict(RestartState(), death, policy(restart_on=restart_on))
    assert decision.action is (Action.RESTART if restarted else Action.NONE)
    assert decision.state.restart_count == int(restarted)


def test_rd_22_an_exit_that_is_not_restarted_says_why() -> None:
    decision = verdict(RestartState(), crash(code=0), policy(restart_on="on_failure"))
    assert decision.reason == "not restarted (restart_on = on_failure)"


def test_rd_24_a_death_during_a_stop_is_left_alone() -> None:
    around = Circumstances(now_ms=NOW, stopping=True)
    decision = decide(policy("notify", enabled=True), state(20, 1), crash(), around)
    assert (decision.action, decision.state) == (Action.NONE, state(20, 1))


def test_a_death_during_a_pause_is_left_alone_even_when_the_limits_are_spent() -> None:
    decision = decide(policy(), state(20, 1), crash(), Circumstances(now_ms=NOW, paused=True))
    assert (decision.action, decision.state) == (Action.NONE, state(20, 1))


def test_f4_an_exit_code_that_means_give_up_fails_at_once() -> None:
    decision = verdict(RestartState(), crash(code=78), policy(give_up_exit_codes=[3, 78]))
    assert decision.action is Action.MARK_FAILED
    assert decision.reason.startswith("exit code 78 is in give_up_exit_codes")
    assert decision.state == RestartState()


# ── Sustained health ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("healthy_ms", "delay", "streak"),
    [
        pytest.param(301_000, 1, 1, id="RD-25"),
        pytest.param(300_000, 1, 1, id="exactly"),
        pytest.param(299_000, 8, 4, id="RD-26"),
    ],
)
def test_only_sustained_health_clears_the_streak(healthy_ms: int, delay: float, streak: int) -> None:
    decision = verdict(state(3, 400_000), crash(healthy_for_ms=healthy_ms), policy("patient"))
    assert (decision.delay_ms / 1000, decision.streak_cleared) == (delay, streak == 1)
    assert (decision.state.restart_count, decision.state.streak_count) == (4, streak)


def test_t6_the_reset_after_health_comes_before_the_limits() -> None:
    full = state(5, 1_000)
    assert verdict(full, crash(healthy_for_ms=300_000), policy("patient")).action is Action.RESTART
    assert verdict(full, crash(healthy_for_ms=0), policy("patient")).action is Action.MARK_FAILED


def test_rd_28_sustained_health_never_buys_a_longer_life_than_the_lifetime_limit() -> None:
    decisions = lives(policy("patient"), [1800.0 * n for n in range(21)], healthy_for_s=1700)
    assert delays(decisions) == [1] * 20
    assert decisions[20].action is Action.MARK_FAILED
    assert decisions[20].reason.startswith("20 restarts in its lifetime")


def test_a_cleared_streak_leaves_the_lifetime_count_and_the_last_restart() -> None:
    assert cleared_streak(RestartState(7, 3, NOW, (1, 2))) == RestartState(7, 0, NOW, (1, 2))


# ── Delays ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("preset", "expected"),
    [
        pytest.param("steady", [1, 2, 4, 8, 16, 32, 60, 60, 60], id="BO-01"),
        pytest.param("patient", [1, 2, 4, 8, 16, 32, 60, 60, 60], id="patient"),
        pytest.param("plugin", [0, 1, 2, 4, 8, 16, 30, 30], id="BO-02"),
        pytest.param("notify", [0, 0, 0, 0], id="notify"),
    ],
)
def test_the_delays_of_a_preset(preset: str, expected: list[float]) -> None:
    assert [delay_s(policy(preset), n) for n in range(len(expected))] == expected


def test_bo_03_no_delay_is_above_its_maximum() -> None:
    assert max(delay_s(policy(max_delay_s=5), n) for n in range(10)) == 5


def test_bo_04_a_small_first_delay_is_honoured() -> None:
    quick = policy("plugin", initial_delay_s=0.1)
    assert [delay_s(quick, n) for n in range(3)] == [0, 0.1, 0.2]


@pytest.mark.parametrize(
    ("multiplier", "expected"), [(1, 1), (1.0001, 2.7181), (2, 60), (1e9, 60), (1e308, 60)]
)
def test_bo_05_a_long_streak_does_not_overflow(multiplier: float, expected: float) -> None:
    assert delay_s(policy(multiplier=multiplier), 10_000) == pytest.approx(expected, abs=1e-4)


def test_a_huge_multiplier_reaches_the_maximum_at_its_second_restart() -> None:
    assert [delay_s(policy(multiplier=1e200), n) for n in range(3)] == [1, 60, 60]


@pytest.mark.parametrize("streak", [-1, -10_000])
def test_bo_06_a_negative_streak_waits_a_second(streak: int) -> None:
    assert delay_s(policy(), streak) == 1


def test_bo_06_a_maximum_of_nothing_waits_a_second() -> None:
    assert delay_s(policy(initial_delay_s=0, max_delay_s=0), 5) == 1


def test_jitter_takes_its_share_off_a_delay_and_never_goes_below_the_floor() -> None:
    jittery = policy(jitter=0.5)
    assert delay_s(jittery, 4, chance=0.5) == 12
    assert delay_s(policy(jitter=1), 4, chance=0.999) == 1


# ── Tasks ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("paused", "stopping"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("preset", ["steady", "patient", "notify", "plugin"])
def test_a_task_that_ends_with_success_is_done_and_begins_anew_with_cleared_counters(
    preset: str, paused: bool, stopping: bool
) -> None:
    moment = Circumstances(now_ms=NOW, is_task=True, paused=paused, stopping=stopping)
    decision = decide(policy(preset), state(4, 10), crash(code=0), moment)
    assert (decision.action, decision.done, decision.state) == (Action.NONE, True, RestartState())


def test_a_task_that_fails_is_retried_by_its_policy() -> None:
    moment = Circumstances(now_ms=NOW, is_task=True)
    decision = decide(policy(), state(1, 10), crash(), moment)
    assert (decision.action, decision.done, decision.state.restart_count) == (Action.RESTART, False, 2)
