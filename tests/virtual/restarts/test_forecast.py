"""A forecast is what happens: every preset's, held against the real actors in virtual time."""

from __future__ import annotations

import pytest
from tests.virtual.conftest import SystemFactory
from tests.virtual.simulated_system import W, worker

from rekindle.actors.deaths.death import Exit
from rekindle.actors.rules.forecast import dying, forecast, recorded
from rekindle.actors.simulation import crashes_after

HOURS = 6


@pytest.mark.parametrize("preset", ["steady", "service", "patient", "notify", "plugin"])
@pytest.mark.parametrize("seconds", [1, 3, 45, 61, 290, 302, 600])
def test_the_actors_do_what_was_forecast(new_system: SystemFactory, preset: str, seconds: int) -> None:
    spec = worker(preset=preset, restart={"enabled": True, "jitter": 0.0})
    seen = forecast(spec.restart, dying(seconds * 1000, Exit(code=1)), until_ms=HOURS * 3_600_000)
    system = new_system(spec, scripts=crashes_after(seconds)).start()
    system.run(HOURS * 3600)
    happened = [(event.action, event.reason, round(event.delay_s * 1000)) for event in system.deaths()]
    assert happened == [
        (life.decision.action.value, life.decision.reason, life.decision.delay_ms) for life in seen.lives
    ]
    starts = [round(at * 1000) for at in system.starts()]
    assert starts[: len(seen.lives)] == [life.started_ms for life in seen.lives]


def test_what_the_actors_recorded_is_what_a_replay_lives_through(new_system: SystemFactory) -> None:
    spec = worker(preset="steady")
    system = new_system(spec, scripts=crashes_after(3)).start()
    system.run(3600)
    deaths = tuple(reversed(system.memory.deaths(W)))
    again = forecast(spec.restart, recorded(deaths))
    assert [life.decision.reason for life in again.lives] == [record.reason for record in deaths]
