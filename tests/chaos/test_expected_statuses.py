"""What a scenario expects of a status, in the words of the monitor or of `rekindle status`."""

from __future__ import annotations

import pytest
from tests.chaos.sample_scenarios import play

from rekindle.actors.simulation import Scenario, dies_after, exits, reaches, reasons
from rekindle.actors.simulation.scenarios.expectations import Expectation

TAG = "tag"


def unmet(scenario: Scenario, *expected: Expectation) -> tuple[str, ...]:
    """What is not met of these expectations."""
    return play(scenario.expect(*expected)).unmet


def healthy_from_37() -> Scenario:
    """A worker that dies once and is healthy from 37 s on."""
    return Scenario("late", lasts_s=90).worker(TAG, dies_after(36), dies_after(500))


def test_a_worker_that_was_healthy_before_is_healthy_in_the_time_that_is_looked_at() -> None:
    assert unmet(healthy_from_37(), reaches(TAG, "healthy", by=80, after=45)) == ()


def test_a_worker_that_is_not_healthy_before_its_time_is_not_expected_to_be() -> None:
    scenario = Scenario("dead", lasts_s=90).worker(TAG, dies_after(5), restart={"enabled": False})
    (why,) = unmet(scenario, reaches(TAG, "healthy", by=80, after=45))
    assert why.startswith("tag is not healthy from 45 by 80 s; it was healthy at")


@pytest.mark.parametrize("word", ["dead", "stopped"])
def test_a_worker_that_ended_well_is_dead_and_shown_as_stopped(word: str) -> None:
    scenario = Scenario("batch", lasts_s=60).worker(TAG, exits(0, after_s=10), preset="patient")
    assert unmet(scenario, reaches(TAG, word, by=20)) == ()


def test_a_worker_that_crashed_is_shown_as_crashed_and_not_as_stopped() -> None:
    scenario = Scenario("crash", lasts_s=60).worker(TAG, dies_after(10), dies_after(500))
    assert unmet(scenario, reaches(TAG, "crashed", by=20)) == ()
    assert unmet(scenario, reaches(TAG, "stopped", by=20)) != ()


def test_the_reason_of_a_decision_can_be_expected() -> None:
    assert unmet(healthy_from_37(), reasons(TAG, "Restart #1 with 1s backoff")) == ()
    (why,) = unmet(healthy_from_37(), reasons(TAG, "3 restarts"))
    assert why == "tag: the reason of death 1 is not '3 restarts' but 'Restart #1 with 1s backoff'"
