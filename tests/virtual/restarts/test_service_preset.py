"""What the preset `service` promises: ten minutes of outage, and a crash a week without end."""

from __future__ import annotations

from itertools import repeat
from random import Random

import pytest
from tests.virtual.conftest import SystemFactory
from tests.virtual.simulated_system import SimulatedSystem, worker

from rekindle.actors.deaths.death import Exit
from rekindle.actors.rules.forecast import ForecastEnd, dying, forecast
from rekindle.actors.simulation import crashes_after, dies_after, runs
from rekindle.actors.spec.presets import PRESETS
from rekindle.actors.spec.program import command

SERVICE = PRESETS["service"].restart
OUTAGE_S = 600
WEEK_S = 7 * 24 * 3600
CRASH = Exit(code=1)


@pytest.mark.parametrize("lives_ms", [0, 10, 1000, 2500, 5000, 30_000, 61_000])
@pytest.mark.parametrize("chance", [0.0, 0.5, 0.999999])
def test_it_survives_an_outage_of_ten_minutes_whatever_the_jitter(lives_ms: int, chance: float) -> None:
    behaviour = dying(lives_ms, CRASH, outage_ms=OUTAGE_S * 1000)
    seen = forecast(SERVICE, behaviour, chances=repeat(chance))
    assert seen.verdict is ForecastEnd.LIVES_ON


@pytest.mark.parametrize("seed", range(20))
def test_it_survives_an_outage_of_ten_minutes_with_any_seed(seed: int) -> None:
    random = Random(seed)
    chances = iter(random.random, None)
    seen = forecast(SERVICE, dying(0, CRASH, outage_ms=OUTAGE_S * 1000), chances=chances)
    assert seen.verdict is ForecastEnd.LIVES_ON


def test_it_gives_up_a_program_that_never_stays_up() -> None:
    seen = forecast(SERVICE, dying(100, CRASH))
    assert (seen.verdict, seen.restarts) == (ForecastEnd.GIVEN_UP, 18)
    assert seen.reason.startswith("18 restarts in 30 minutes;")


def test_it_survives_a_crash_a_week_for_twenty_years() -> None:
    seen = forecast(SERVICE, dying(WEEK_S * 1000, CRASH), until_ms=1043 * WEEK_S * 1000)
    assert seen.verdict is ForecastEnd.STILL_DYING
    assert seen.restarts > 1000
    assert {life.decision.delay_ms for life in seen.lives} == {1000}


def test_the_actors_keep_it_up_through_an_outage_of_ten_minutes(new_system: SystemFactory) -> None:
    system: SimulatedSystem = new_system(
        worker(preset="service"),
        scripts=lambda _: dies_after(0.01) if system.now < OUTAGE_S else runs(),
    )
    system.start().run(OUTAGE_S * 2)
    assert {event.action for event in system.deaths()} == {"restart"}
    assert system.starts()[-2] < OUTAGE_S <= system.starts()[-1] < OUTAGE_S + 61
    assert system.status().shown == "healthy"


def test_the_actors_keep_it_up_through_a_crash_a_week_for_a_year(new_system: SystemFactory) -> None:
    plain = worker(preset="service", run=command("program"))  # a year of heartbeats takes minutes
    system = new_system(plain, scripts=crashes_after(WEEK_S)).start()
    system.run(WEEK_S * 52.5)
    assert [event.action for event in system.deaths()] == ["restart"] * 52
    assert {event.streak_count for event in system.deaths()} == {1}
    assert system.status().shown == "healthy"
