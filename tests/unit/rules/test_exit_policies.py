"""Policies by exit code, signal and readiness: what is success, what counts, what is never restarted."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.builders import crash, policy

from rekindle.actors.deaths.death import Action, Cause, Death, Exit
from rekindle.actors.errors import SpecError
from rekindle.actors.rules.restarts import Circumstances, Decision, Limit, RestartState, decide
from rekindle.actors.spec.policies.restart_policy import RestartPolicy

NOW = 1_000_000_000


def exited(code: int, **others: object) -> Death:
    return replace(crash(), cause=Cause.EXITED, exit=Exit(code=code), **others)


def killed(signal: int) -> Death:
    return replace(crash(), cause=Cause.SIGNALLED, exit=Exit(signal=signal))


def decided(under: RestartPolicy, death: Death, state: RestartState | None = None) -> Decision:
    return decide(under, state or RestartState(), death, Circumstances(now_ms=NOW))


# ── success ──────────────────────────────────────────────────────────────────────────────


def test_another_exit_code_may_mean_success() -> None:
    under = policy(restart_on="on_failure", success_exit_codes=(3,))
    assert decided(under, exited(3)).action is Action.NONE
    assert decided(under, exited(0)).action is Action.NONE
    assert decided(under, exited(4)).action is Action.RESTART


def test_a_task_is_done_with_an_exit_code_that_means_success() -> None:
    around = Circumstances(now_ms=NOW, is_task=True)
    assert decide(policy(success_exit_codes=(3,)), RestartState(), exited(3), around).done
    assert not decide(policy(), RestartState(), exited(3), around).done


# ── signals ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["SIGTERM", "TERM", 15])
def test_a_signal_may_end_a_worker_for_good(name: str | int) -> None:
    decision = decided(policy(no_restart_signals=(name,)), killed(15))
    assert (decision.action, decision.reason) == (
        Action.NONE,
        "not restarted: SIGTERM is in no_restart_signals",
    )
    assert decided(policy(no_restart_signals=(name,)), killed(9)).action is Action.RESTART


def test_a_signal_may_restart_what_is_not_restarted_otherwise() -> None:
    under = policy(restart_on="never", restart_on_signals=("SIGKILL",))
    assert decided(under, killed(9)).action is Action.RESTART
    assert decided(under, killed(15)).action is Action.NONE
    assert decided(under, exited(1)).action is Action.NONE


def test_the_signal_by_which_a_hung_worker_is_ended_is_not_its_own_end() -> None:
    hung = replace(killed(15), cause=Cause.HEARTBEAT_LOST)
    assert decided(policy(no_restart_signals=("SIGTERM",)), hung).action is Action.RESTART


# ── what is not counted ──────────────────────────────────────────────────────────────────


def test_an_uncounted_exit_code_restarts_at_once_and_leaves_every_counter_alone() -> None:
    before = RestartState(restart_count=20, streak_count=5, last_restart_ms=NOW - 1, deaths_ms=(NOW - 1,))
    for mode in ("since_last_restart", "sliding"):
        under = policy(uncounted_exit_codes=(75,), window_mode=mode)
        decision = decided(under, exited(75, uptime_ms=1000), before)
        assert (decision.action, decision.delay_ms) == (Action.RESTART_UNCOUNTED, 0)
        assert decision.state == before
        assert not decision.counted


@pytest.mark.parametrize(("uptime_ms", "delay_ms"), [(0, 1000), (300, 700), (999, 1), (1000, 0), (90_000, 0)])
def test_a_hot_loop_of_uncounted_exits_starts_at_most_once_a_second(uptime_ms: int, delay_ms: int) -> None:
    assert decided(policy(uncounted_exit_codes=(75,)), exited(75, uptime_ms=uptime_ms)).delay_ms == delay_ms


# ── deaths before it was ready ───────────────────────────────────────────────────────────

EARLY = exited(1, was_ready=False)


def test_deaths_before_it_was_ready_have_a_budget_and_a_streak_of_their_own() -> None:
    under, state = policy(max_boot_failures=3, max_in_window=1), RestartState()
    delays = []
    for _ in range(3):
        decision = decided(under, EARLY, state)
        assert decision.action is Action.RESTART_UNCOUNTED
        delays.append(decision.delay_ms)
        state = decision.state
    assert delays == [1000, 2000, 4000]
    assert state == RestartState(boot_failures=3)
    given_up = decided(under, EARLY, state)
    assert (given_up.action, given_up.limit) == (Action.MARK_FAILED, Limit("boot", 3, 3))
    assert given_up.reason.startswith("3 restarts in a row before it was ready (limit 3)")


def test_a_death_after_it_was_ready_begins_the_count_of_boot_failures_anew() -> None:
    decision = decided(policy(max_boot_failures=3), exited(1), RestartState(boot_failures=2))
    assert (decision.action, decision.state.boot_failures) == (Action.RESTART, 0)


def test_without_a_budget_of_their_own_they_count_like_any_other() -> None:
    assert decided(policy(), EARLY).action is Action.RESTART


# ── which limit ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("settings", "state", "limit"),
    [
        ({"max_lifetime": 20}, RestartState(restart_count=20), Limit("lifetime", 20, 20)),
        ({}, RestartState(streak_count=5, last_restart_ms=NOW), Limit("window", 5, 5)),
        (
            {"window_mode": "sliding", "max_in_window": 2},
            RestartState(deaths_ms=(NOW - 2, NOW - 1)),
            Limit("window", 2, 2),
        ),
        ({"max_consecutive": 4}, RestartState(streak_count=4), Limit("consecutive", 4, 4)),
        ({"give_up_exit_codes": (1,)}, RestartState(), Limit("exit_code")),
    ],
)
def test_a_decision_to_give_up_names_the_limit_in_numbers(
    settings: dict[str, Any], state: RestartState, limit: Limit
) -> None:
    assert decided(policy(**settings), exited(1), state).limit == limit


# ── refusals ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"success_exit_codes": (256,)}, "256 is not an exit code; they go from 0 to 255"),
        ({"uncounted_exit_codes": (-1,)}, "-1 is not an exit code; they go from 0 to 255"),
        ({"uncounted_exit_codes": (7,), "give_up_exit_codes": (7,)}, "7 is in give_up_exit_codes, too"),
        ({"restart_on_signals": ("SIGFOO",)}, "'SIGFOO' is not a signal"),
        ({"no_restart_signals": (0,)}, "0 is not a signal"),
        (
            {"no_restart_signals": ("TERM",), "restart_on_signals": (15,)},
            "SIGTERM is in restart_on_signals, too",
        ),
        ({"max_boot_failures": 0}, "must be at least 1"),
    ],
)
def test_what_contradicts_itself_is_refused(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(SpecError, match=reason):
        policy(**settings)
