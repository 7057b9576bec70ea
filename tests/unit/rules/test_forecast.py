"""What a policy would do: the forecast alone, without the command that shows it."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle

import pytest
from tests.contract.records import NOW, death, final_death

from rekindle.actors.deaths.death import Action, Exit
from rekindle.actors.rules.forecast import (
    MOST_LIVES,
    Forecast,
    ForecastEnd,
    dying,
    forecast,
    history,
    recorded,
)
from rekindle.actors.spec.policies.restart_policy import RestartPolicy
from rekindle.actors.spec.presets import PRESETS

CRASH = Exit(code=1)
SECOND, MINUTE, HOUR = 1000, 60_000, 3_600_000
STEADY = PRESETS["steady"].restart
NO_LIMITS = replace(STEADY, max_in_window=None, max_lifetime=None)


def delays(seen: Forecast) -> list[float]:
    return [life.decision.delay_ms / 1000 for life in seen.lives if life.restarted]


def test_rd_09_a_tight_loop_is_given_up_at_the_sixth_death() -> None:
    """RD-09."""
    seen = forecast(STEADY, dying(3 * SECOND, CRASH))
    assert delays(seen) == [1, 2, 4, 8, 16]
    assert (seen.verdict, seen.at_ms, seen.restarts) == (ForecastEnd.GIVEN_UP, 49 * SECOND, 5)
    assert [life.started_ms // SECOND for life in seen.lives] == [0, 4, 9, 16, 27, 46]


def test_rd_10_a_crash_every_ten_minutes_uses_up_the_lifetime() -> None:
    """RD-10."""
    seen = forecast(STEADY, dying(10 * MINUTE, CRASH))
    assert delays(seen) == [1, 2, 4, 8, 16, 32] + [60] * 14
    assert len(seen.lives) == 21


def test_rd_19_a_plugin_gets_five_restarts_the_first_of_them_at_once() -> None:
    """RD-19."""
    seen = forecast(PRESETS["plugin"].restart, dying(SECOND, CRASH))
    assert delays(seen) == [0, 1, 2, 4, 8]
    assert seen.verdict is ForecastEnd.GIVEN_UP


def test_rd_25_long_health_clears_the_streak_and_a_slow_start_does_not_count_as_health() -> None:
    """RD-25, RD-26."""
    patient = PRESETS["patient"].restart
    assert set(delays(forecast(patient, dying(301 * SECOND, CRASH)))) == {1}
    slow = forecast(patient, dying(301 * SECOND, CRASH, healthy_after_ms=2 * SECOND))
    assert delays(slow)[:4] == [1, 2, 4, 8]


def test_an_outage_that_ends_while_a_restart_waits_is_outlasted_by_that_wait() -> None:
    seen = forecast(NO_LIMITS, dying(SECOND, CRASH, outage_ms=10 * MINUTE))
    assert seen.verdict is ForecastEnd.LIVES_ON
    assert seen.at_ms == seen.up_since_ms == seen.restarts_ms()[-1]
    assert 10 * MINUTE <= seen.at_ms < 11 * MINUTE


def test_a_policy_that_gives_up_during_an_outage_is_down_for_the_rest_of_it() -> None:
    seen = forecast(STEADY, dying(SECOND, CRASH, outage_ms=10 * MINUTE))
    assert (seen.verdict, seen.at_ms) == (ForecastEnd.GIVEN_UP, 37 * SECOND)
    assert seen.up_ms(10 * MINUTE) == 6 * SECOND


def test_without_limits_it_still_dies_when_the_forecast_ends() -> None:
    seen = forecast(NO_LIMITS, dying(SECOND, CRASH), until_ms=HOUR)
    assert (seen.verdict, seen.at_ms) == (ForecastEnd.STILL_DYING, HOUR)
    assert all(life.died_ms <= HOUR for life in seen.lives)


def test_a_life_that_is_cut_off_by_the_end_counts_as_up() -> None:
    seen = forecast(STEADY, dying(10 * MINUTE, CRASH), until_ms=MINUTE)
    assert seen.lives == ()
    assert (seen.verdict, seen.up_since_ms, seen.up_ms(MINUTE)) == (ForecastEnd.STILL_DYING, 0, MINUTE)


def test_a_forecast_without_delays_and_limits_ends_all_the_same() -> None:
    eager = replace(NO_LIMITS, initial_delay_s=0, min_delay_s=0, max_delay_s=0)
    assert len(forecast(eager, dying(1, CRASH)).lives) == MOST_LIVES


def test_a_clean_exit_is_left_down_by_a_policy_that_restarts_after_failures() -> None:
    """RD-22."""
    seen = forecast(PRESETS["patient"].restart, dying(SECOND, Exit(code=0)))
    assert (seen.verdict, seen.restarts, len(seen.lives)) == (ForecastEnd.LEFT_DOWN, 0, 1)


def test_the_busiest_hour_is_the_one_with_the_most_restarts() -> None:
    seen = forecast(STEADY, dying(10 * MINUTE, CRASH))
    assert seen.busiest_hour() == 6
    assert forecast(STEADY, dying(3 * SECOND, CRASH)).busiest_hour() == 5
    assert forecast(PRESETS["notify"].restart, dying(3 * SECOND, CRASH)).busiest_hour() == 0


def test_chance_shortens_delays_by_the_share_that_the_policy_grants() -> None:
    jittery = replace(STEADY, jitter=0.5, min_delay_s=0.0)
    assert delays(forecast(jittery, dying(SECOND, CRASH), chances=cycle([0.5]))) == [0.75, 1.5, 3, 6, 12]


# ── recorded deaths ──────────────────────────────────────────────────────────────────────


def test_a_replay_keeps_how_long_lives_were_and_asks_the_policy_for_delays() -> None:
    lives = [
        death(1, uptime_ms=3000, died_at_wall_ms=NOW),
        death(2, uptime_ms=5000, died_at_wall_ms=NOW + 6000, delay_ms=2000),
        final_death(3, uptime_ms=7000, died_at_wall_ms=NOW + 15_000),
    ]
    seen = forecast(replace(STEADY, initial_delay_s=10), recorded(lives))
    assert [life.death.uptime_ms for life in seen.lives] == [3000, 5000, 7000]
    assert [life.started_ms for life in seen.lives] == [0, 13_000, 38_000]
    assert (seen.verdict, seen.at_ms) == (ForecastEnd.LIVES_ON, 85_000)


def test_a_replay_keeps_the_time_that_a_worker_was_down_for_another_reason() -> None:
    paused = [death(1, died_at_wall_ms=NOW), death(2, died_at_wall_ms=NOW + 1000 + HOUR + 3000)]
    assert [life.started_ms for life in forecast(STEADY, recorded(paused)).lives] == [0, 3000 + 1000 + HOUR]
    failed = [final_death(1, died_at_wall_ms=NOW), death(2, died_at_wall_ms=NOW + HOUR)]
    assert [life.started_ms for life in forecast(STEADY, recorded(failed)).lives] == [0, 4000]


def test_a_replay_survives_clocks_that_went_back_and_uptimes_below_nothing() -> None:
    strange = [death(1), death(2, died_at_wall_ms=NOW - HOUR), death(3, uptime_ms=-5)]
    assert len(forecast(STEADY, recorded(strange)).lives) == 3
    was = history(strange)
    assert all(one.died_ms <= other.started_ms for one, other in zip(was.lives, was.lives[1:], strict=False))


def test_history_tells_what_was_really_decided() -> None:
    was = history([death(1), final_death(2, died_at_wall_ms=NOW + 9000)])
    assert [life.decision.action for life in was.lives] == [Action.RESTART, Action.MARK_FAILED]
    assert (was.verdict, was.at_ms, was.restarts, was.policy) == (ForecastEnd.GIVEN_UP, 12_000, 1, None)
    assert history([death(1)]).verdict is ForecastEnd.LIVES_ON


@pytest.mark.parametrize("policy", [each.restart for each in PRESETS.values()], ids=list(PRESETS))
def test_a_replay_of_a_forecast_under_its_own_policy_is_that_forecast(policy: RestartPolicy) -> None:
    first = forecast(policy, dying(20 * SECOND, CRASH), until_ms=HOUR)
    records = [
        death(
            life.number,
            uptime_ms=life.death.uptime_ms,
            died_at_wall_ms=NOW + life.died_ms,
            exit_code=1,
            signal=None,
            cause=life.death.cause,
            action=life.decision.action,
            delay_ms=life.decision.delay_ms,
        )
        for life in first.lives
    ]
    again = forecast(policy, recorded(records))
    assert [(life.started_ms, life.decision) for life in again.lives] == [
        (life.started_ms, life.decision) for life in first.lives
    ]


def test_restarts_that_no_limit_counts_go_on_and_are_told_as_restarts() -> None:
    policy = replace(STEADY, uncounted_exit_codes=(75,))
    seen = forecast(policy, dying(3 * SECOND, Exit(code=75)), until_ms=MINUTE)
    assert (seen.verdict, seen.restarts) == (ForecastEnd.STILL_DYING, 20)
    assert delays(seen) == [0] * 20


def test_a_worker_that_dies_before_it_is_healthy_uses_the_budget_of_boot_failures() -> None:
    policy = replace(STEADY, max_boot_failures=2)
    seen = forecast(policy, dying(SECOND, CRASH, healthy_after_ms=5 * SECOND))
    assert (seen.verdict, seen.restarts) == (ForecastEnd.GIVEN_UP, 2)
    assert seen.reason.startswith("2 restarts in a row before it was ready (limit 2)")
