"""When a starting worker is ready: every condition that its spec names is met."""

from __future__ import annotations

import pytest

from rekindle.actors.deaths.death import Cause
from rekindle.actors.facts.frames import Frame
from rekindle.actors.facts.health_status import Status
from rekindle.actors.rules.worker_health.health import advance, deadline, pending
from rekindle.actors.rules.worker_health.health_states import (
    Checked,
    Elapsed,
    Granted,
    HealthChange,
    HealthStep,
    Healthy,
    Launched,
    Pending,
    Recovering,
    Reported,
    State,
    Trigger,
)
from rekindle.actors.spec.policies.health_policy import HealthPolicy
from rekindle.actors.spec.policies.ready_policy import Condition, ReadyPolicy
from rekindle.actors.spec.probe import TcpProbe

POLICY = HealthPolicy()
HEALTHY = Reported(Frame("healthy"))
OUTPUT = Checked(Condition.OUTPUT, is_met=True)
CONNECTED = Checked(Condition.TCP, is_met=True)
PORT = TcpProbe("127.0.0.1:5432")
SPEAKS = ReadyPolicy(output="listening")


def after(state: State, *story: tuple[float, Trigger]) -> HealthStep:
    """The last step of a story."""
    step = HealthStep(state)
    for at, trigger in story:
        step = advance(step.state, trigger, POLICY, at)
    return step


def test_a_command_is_ready_when_all_its_conditions_are_met_in_any_order() -> None:
    ready = ReadyPolicy(output="listening", tcp=PORT, after_s=3)
    start = pending(0, ready, reports_health=False)
    stories: tuple[list[tuple[float, Trigger]], ...] = (
        [(0.1, Launched()), (1, OUTPUT), (2, CONNECTED), (3.1, Elapsed())],
        [(0.1, Launched()), (3.1, Elapsed()), (4, CONNECTED), (5, OUTPUT)],
        [(0.1, Launched()), (4, CONNECTED), (5, OUTPUT)],
    )
    for story in stories:
        assert isinstance(after(start, *story[:-1]).state, Pending)
        last = after(start, *story)
        assert last.state == Healthy(story[-1][0], story[-1][0])
        assert last.change == HealthChange(Status.PENDING, Status.HEALTHY)


def test_the_life_of_a_process_is_measured_from_its_start_and_not_from_the_order_to_start_it() -> None:
    state = after(pending(0, ReadyPolicy(after_s=3), False), (10, Launched())).state
    assert deadline(state, POLICY) == 13
    assert isinstance(after(state, (12.9, Elapsed())).state, Pending)
    assert after(state, (13, Elapsed())).state == Healthy(13, 13)


def test_with_zero_seconds_a_command_is_ready_as_soon_as_it_is_started() -> None:
    assert after(pending(0, ReadyPolicy(after_s=0), False), (1, Launched())).state == Healthy(1, 1)


def test_a_worker_that_only_has_to_live_on_is_never_too_late() -> None:
    state = after(pending(0, ReadyPolicy(after_s=90), False), (0, Launched())).state
    assert deadline(state, POLICY) == 90
    assert isinstance(after(state, (60, Elapsed())).state, Pending)


def test_a_worker_that_reports_its_health_must_also_say_that_it_is_healthy() -> None:
    start = pending(0, SPEAKS, reports_health=True)
    assert isinstance(after(start, (1, OUTPUT)).state, Pending)
    assert isinstance(after(start, (1, HEALTHY)).state, Pending)
    assert after(start, (1, HEALTHY), (2, OUTPUT)).state == Healthy(2, 2)
    assert after(start, (1, OUTPUT), (2, HEALTHY)).state == Healthy(2, 2)


def test_a_worker_that_becomes_unhealthy_before_it_is_ready_must_say_again_that_it_is_healthy() -> None:
    start = pending(0, SPEAKS, reports_health=True)
    state = after(start, (1, HEALTHY), (2, Reported(Frame("unhealthy"))), (3, OUTPUT)).state
    assert isinstance(state, Pending)
    assert after(state, (4, HEALTHY)).state == Healthy(4, 4)


def test_a_recovery_before_readiness_ends_in_a_start_that_goes_on() -> None:
    start = pending(0, SPEAKS, reports_health=True)
    recovering = after(start, (10, Reported(Frame("recovering", recover_for_s=30)))).state
    assert isinstance(recovering, Recovering)
    back = after(recovering, (20, HEALTHY))
    assert back.change == HealthChange(Status.RECOVERING, Status.PENDING)
    assert deadline(back.state, POLICY) == 70, "the recovery does not count as time of the start"
    assert after(recovering, (15, OUTPUT), (20, HEALTHY)).state == Healthy(20, 20)


def test_a_start_that_takes_too_long_says_what_every_missing_condition_said_last() -> None:
    ready = ReadyPolicy(output="listening", tcp=PORT, after_s=1)
    refused = Checked(Condition.TCP, is_met=False, words="connection refused")
    step = after(pending(0, ready, False), (0, Launched()), (1, Elapsed()), (5, refused), (60, Elapsed()))
    assert step.change == HealthChange(
        Status.PENDING,
        Status.DEAD,
        Cause.STARTUP_TIMEOUT,
        detail="not ready within 60 s: tcp 127.0.0.1:5432: connection refused; output matching /listening/",
    )


def test_a_condition_that_was_met_once_stays_met_and_one_that_is_not_awaited_changes_nothing() -> None:
    start = pending(0, ReadyPolicy(output="x", tcp=PORT), reports_health=False)
    state = after(start, (1, OUTPUT), (2, Checked(Condition.OUTPUT, is_met=False))).state
    assert after(state, (3, Checked(Condition.HTTP, is_met=True))).state == state
    assert after(state, (4, CONNECTED)).state == Healthy(4, 4)
    assert after(Healthy(4, 4), (5, OUTPUT)) == HealthStep(Healthy(4, 4))


def test_time_that_a_start_is_granted_moves_its_timeout_and_not_its_age() -> None:
    state = after(pending(0, ReadyPolicy(after_s=3, tcp=PORT), False), (1, Launched()), (2, Granted())).state
    assert deadline(state, POLICY) == 4
    assert deadline(after(state, (4, Elapsed())).state, POLICY) == 62


@pytest.mark.parametrize("pattern", ["", "(", "[a", "*"])
def test_a_pattern_that_is_not_a_regular_expression_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="output"):
        ReadyPolicy(output=pattern)
