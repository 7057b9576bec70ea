"""Schedules across the end of a supervisor, killed or orderly, and what was due while none was running."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.virtual.conftest import SystemFactory
from tests.virtual.schedules.scheduled import by_clock, rows, states
from tests.virtual.simulated_system import SimulatedSystem, W, lives, worker

from rekindle.actors.messages import PauseWorkers, RunFailed, RunMissed
from rekindle.actors.simulation import exits

SHORT = lives(exits(after_s=5))
LONG = lives(exits(after_s=250))


def test_what_was_due_while_no_supervisor_ran_is_recorded_and_made_up_for_by_one_run(
    new_system: SystemFactory,
) -> None:
    system = new_system(by_clock(), scripts=SHORT).start()
    system.run_to(150)
    system.restart_application(away_s=300)  # 200, 300 and 400 are over
    system.start().run(10)
    assert states(system) == ["succeeded", "missed:supervisor_down", "succeeded"]
    [_, missed, made_up] = rows(system)
    assert (missed.times, made_up.trigger) == (3, "catch_up")
    [(_, event)] = system.events(RunMissed)
    assert (event.times, event.reason) == (3, "supervisor_down")


def test_with_skip_nothing_makes_up_for_missed_runs(new_system: SystemFactory) -> None:
    system = new_system(by_clock(missed="skip"), scripts=SHORT).start()
    system.restart_application(away_s=250)
    system.start().run(10)
    assert (system.starts(), states(system)) == ([], ["missed:supervisor_down"])
    system.run_to(51)  # 300 on the clock
    assert len(system.starts()) == 1


def test_a_run_in_the_middle_of_which_the_supervisor_is_killed_is_lost_and_made_up_for(
    new_system: SystemFactory,
) -> None:
    system = new_system(by_clock(), scripts=LONG).start()
    system.run_to(150)
    system.restart_application(away_s=10)
    system.start().run(10)
    assert states(system) == ["lost:supervisor_lost", "running"]
    assert rows(system)[1].trigger == "catch_up"
    [(_, failed)] = system.events(RunFailed)
    assert failed.reason == "its supervisor ended without notice"


def test_a_lost_run_is_not_repeated_with_skip(new_system: SystemFactory) -> None:
    system = new_system(by_clock(missed="skip"), scripts=LONG).start()
    system.run_to(150)
    system.restart_application()
    system.start().run(10)
    assert states(system) == ["lost:supervisor_lost"]


def test_a_run_that_waited_when_the_supervisor_was_killed_is_lost_too(new_system: SystemFactory) -> None:
    system = new_system(by_clock(overlap="queue"), scripts=LONG).start()
    system.run_to(250)
    assert states(system) == ["running", "waiting"]
    system.restart_application()
    assert states(system) == ["lost:supervisor_lost"] * 2


def test_an_orderly_stop_ends_the_run_and_the_next_supervisor_repeats_it(new_system: SystemFactory) -> None:
    system = new_system(by_clock(), scripts=LONG).start()
    system.run_to(150)
    system.shut_down()
    assert states(system) == ["stopped:shutdown"]
    system.restart_application()
    system.start().run(10)
    assert states(system) == ["stopped:shutdown", "running"]


def test_an_orderly_stop_while_a_run_waits_for_its_retry_is_no_different(new_system: SystemFactory) -> None:
    retried = by_clock(restart={"initial_delay_s": 50})
    system = new_system(retried, scripts=lives(exits(1, after_s=1))).start()
    system.run_to(120)
    system.shut_down()
    assert states(system) == ["stopped:shutdown"]


def test_a_worker_that_is_gone_from_the_file_leaves_no_run_open(new_system: SystemFactory) -> None:
    system = new_system(by_clock(), worker("other"), scripts={W: LONG}).start()
    system.run_to(150)
    system.specs = (worker("other"),)
    system.restart_application()
    assert states(system) == ["lost:supervisor_lost"]


def test_another_schedule_at_the_next_start_counts_from_then_on(new_system: SystemFactory) -> None:
    system = new_system(by_clock(), scripts=SHORT).start()
    system.run_to(150)
    system.specs = (by_clock(every="50s"),)
    system.restart_application(away_s=1000)
    system.start().run(10)
    assert states(system) == ["succeeded"]


def test_a_pause_lasts_across_supervisors_and_its_runs_are_missed(new_system: SystemFactory) -> None:
    system = new_system(by_clock(), scripts=SHORT).start()
    system.tell(PauseWorkers((W,)))
    system.run_to(150)
    system.restart_application(away_s=100)
    system.start().run_to(60)
    assert states(system) == ["missed:paused", "missed:supervisor_down", "missed:paused"]


@pytest.mark.parametrize("killed_at", [99.9, 100, 100.1, 104, 106, 199])
def test_every_due_time_is_known_whenever_the_supervisor_is_killed(
    new_system: SystemFactory, killed_at: float
) -> None:
    system = new_system(by_clock(missed="skip"), scripts=SHORT).start()
    began = system.runtime.clock.wall_ms()
    system.run_to(killed_at)
    system.restart_application(away_s=130)
    system.start().run(400)
    assert_every_due_time_is_known(system, began)


def assert_every_due_time_is_known(system: SimulatedSystem, began: int) -> None:
    """Each multiple of the period is in exactly one row."""
    period, now = 100_000, system.runtime.clock.wall_ms()
    due = list(range((began // period + 1) * period, now + 1, period))
    known = [
        at
        for run in rows(system)
        for at in range(run.due_wall_ms, (run.last_due_wall_ms or run.due_wall_ms) + 1, period)
    ]
    assert known == due
    assert sum(run.times for run in rows(system)) == len(due)
    assert all(earlier < later for earlier, later in pairwise(known))
