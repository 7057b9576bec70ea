"""Schedules on the clock of a time zone: changes to and from summer time, and a clock that is set."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.virtual.conftest import SystemFactory
from tests.virtual.schedules.scheduled import by_clock, rows, set_clock, states
from tests.virtual.simulated_system import SimulatedSystem, W, lives, worker

from rekindle.actors.simulation import exits
from rekindle.actors.spec.worker_spec import WorkerSpec

SHORT = lives(exits(after_s=5))
HOUR = 3600.0
SPRING, AUTUMN = "2026-03-28T12:00:00", "2026-10-24T12:00:00"
"""The days before the clocks of Berlin change."""


def system_at(new_system: SystemFactory, time: str, spec: WorkerSpec) -> SimulatedSystem:
    """A supervisor with this worker that begins at this time, in UTC."""
    system = new_system(worker("other"), scripts={W: SHORT})
    set_clock(system, time)
    system.specs = (spec,)
    system.restart_application()
    return system.start()


def berlin(new_system: SystemFactory, day: str, cron: str) -> SimulatedSystem:
    """A worker on the clock of Berlin, at noon (UTC) before a change."""
    return system_at(new_system, day, by_clock(cron=cron, timezone="Europe/Berlin"))


def due(system: SimulatedSystem) -> list[str]:
    """When runs were due, in UTC."""
    return [f"{datetime.fromtimestamp(run.due_wall_ms / 1000, UTC):%d %H:%M}" for run in rows(system)]


def test_a_time_that_summer_time_leaves_out_runs_right_after_the_gap(new_system: SystemFactory) -> None:
    system = berlin(new_system, SPRING, "30 2 * * *")
    system.run(48 * HOUR)
    assert due(system) == ["29 01:00", "30 00:30"]
    assert states(system) == ["succeeded", "succeeded"]


def test_a_time_that_occurs_twice_in_autumn_runs_once(new_system: SystemFactory) -> None:
    system = berlin(new_system, AUTUMN, "30 2 * * *")
    system.run(48 * HOUR)
    assert due(system) == ["25 00:30", "26 01:30"]


@pytest.mark.parametrize("day", [SPRING, AUTUMN])
def test_an_hourly_run_follows_the_real_hours(new_system: SystemFactory, day: str) -> None:
    system = berlin(new_system, day, "0 * * * *")
    system.run(24 * HOUR + 60)
    assert len(rows(system)) == 24


def test_a_supervisor_that_is_down_over_the_change_makes_up_for_it_once(new_system: SystemFactory) -> None:
    system = berlin(new_system, AUTUMN, "30 2 * * *")
    system.restart_application(away_s=13 * HOUR)  # 01:00 UTC: the second 02:00 in Berlin
    system.start().run(60)
    assert states(system) == ["missed:supervisor_down", "succeeded"]
    system.run(20 * HOUR)
    assert len(rows(system)) == 2


def test_a_clock_that_is_set_forward_is_noticed_within_a_minute(new_system: SystemFactory) -> None:
    system = system_at(new_system, "2026-05-05T10:10:00", by_clock(every="1h", missed="skip"))
    set_clock(system, "2026-05-05T14:20:00")
    system.run(61)
    [missed] = rows(system)
    assert (missed.state, missed.reason, missed.times) == ("missed", "late", 4)


def test_a_clock_that_is_set_back_repeats_nothing(new_system: SystemFactory) -> None:
    system = system_at(new_system, "2026-05-05T10:09:00", by_clock(every="10m"))
    system.run(120)
    set_clock(system, "2026-05-05T09:50:00")
    system.run(24 * 60)  # until 10:14
    assert due(system) == ["05 10:10"]
    system.run(7 * 60)
    assert due(system) == ["05 10:10", "05 10:20"]


def test_a_clock_that_was_wrong_by_a_year_does_not_stop_the_schedule(new_system: SystemFactory) -> None:
    system = system_at(new_system, "2027-05-05T10:09:00", by_clock(every="10m"))
    system.run(120)
    set_clock(system, "2026-05-05T10:15:00")
    system.run(10 * 60)
    assert due(system) == ["05 10:10", "05 10:20"]


def test_a_supervisor_that_was_suspended_runs_the_latest_and_knows_the_others(
    new_system: SystemFactory,
) -> None:
    system = new_system(by_clock(), scripts=SHORT).start()
    system.run_to(90)
    system.runtime.virtual_clock.set_wall(250_000)  # the machine slept: 340 on the clock
    system.run(20)
    assert states(system) == ["missed:late", "succeeded"]
    assert rows(system)[0].times == 2
