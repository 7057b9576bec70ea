"""A monitor that was away does not blame the workers for it (P12)."""

from __future__ import annotations

import pytest
from tests.virtual.conftest import SystemFactory
from tests.virtual.health.test_health import DEAD, HEALTHY, RECOVERING, SILENT, observed, say
from tests.virtual.simulated_system import SimulatedSystem, ids, lives, worker, workers

from rekindle.actors.facts.frames import Frame
from rekindle.actors.simulation import Behaviour, Script


@pytest.mark.parametrize("away", [31.5, 40.0, 61.0, 3600.0])
def test_p12_after_its_own_absence_the_monitor_waits_for_the_frames_in_the_pipes(
    new_system: SystemFactory, away: float
) -> None:
    # One miss of 30 s is death here. The check comes before the frames that were sent meanwhile.
    system = new_system(worker(preset="patient", restart={"enabled": False}), scripts=SILENT).start()
    say(system, (0, "healthy"), (5, "healthy"))
    suspend(system, away)
    system.run(1)
    say(system, (system.now, "healthy"))
    assert system.changes() == [(0, HEALTHY)]


def test_p12_every_absence_is_forgiven_to_workers_that_sent_frames_in_between(
    new_system: SystemFactory,
) -> None:
    system = new_system(worker(preset="patient", restart={"enabled": False}), scripts=SILENT).start()
    for _ in range(5):
        say(system, (system.now, "healthy"))
        suspend(system, 100)
        system.run(1)
    assert system.changes() == [(0, HEALTHY)]


def test_p12_a_worker_that_hangs_is_found_after_one_grace(new_system: SystemFactory) -> None:
    system = new_system(observed(), scripts=SILENT).start()
    say(system, (1, "healthy"))
    suspend(system, 100)
    system.run(60)
    assert system.changes()[-1] == (116, DEAD)


def test_p12_a_second_absence_is_forgiven_before_the_worker_sent_a_frame(new_system: SystemFactory) -> None:
    """It had been silent for 17 s in all that the monitor was there for: 30 s are allowed."""
    system = new_system(worker(preset="patient", restart={"enabled": False}), scripts=SILENT).start()
    say(system, (0, "healthy"))
    suspend(system, 40)
    system.run(17)
    suspend(system, 15)
    system.run(1)
    say(system, (system.now, "healthy"))
    assert system.changes() == [(0, HEALTHY)]


def test_p12_a_slow_monitor_does_not_forgive_a_silence_without_end(new_system: SystemFactory) -> None:
    system = new_system(observed(), scripts=SILENT).start()
    say(system, (1, "healthy"))
    for _ in range(20):
        suspend(system, 8)
        system.run(0)
    assert system.changes()[-1][1] is DEAD


def test_p12_one_absence_is_counted_once_however_many_checks_it_delayed(new_system: SystemFactory) -> None:
    """Each of two checks counted the suspend that delayed both: the third one was not forgiven."""
    silent, other = ids(2)
    policy = {"staleness_s": 30.0, "max_misses": 1}
    specs = [worker(each, restart={"enabled": False}, health=policy) for each in (silent, other)]
    system = new_system(*specs, scripts=SILENT).start()
    system.processes.say(silent, Frame(status="healthy"))
    system.run(1)
    for _ in range(3):
        system.processes.say(other, Frame(status="healthy"))
        suspend(system, 100)
        system.run(1)
    assert system.changes(silent) == [(0, HEALTHY)]


def test_p12_a_starting_and_a_recovering_worker_are_given_time_too(new_system: SystemFactory) -> None:
    starting, recovering = ids(2)
    script: dict[str, Script] = {recovering: SILENT, starting: lives(Behaviour(healthy_after=50))}
    system = new_system(*workers(2, restart={"enabled": False}), scripts=script).start()
    system.processes.say(recovering, Frame(status="recovering", recover_for_s=40))
    system.run(10)
    suspend(system, 100)
    system.run(4)
    system.processes.say(recovering, Frame(status="healthy"))
    system.run(0)
    assert [new for _, new in system.changes(recovering)] == [RECOVERING, HEALTHY]
    assert [new for _, new in system.changes(starting)] == [HEALTHY]


def suspend(system: SimulatedSystem, seconds: float) -> None:
    """Let time pass while the host is asleep."""
    system.runtime.virtual_clock.now += seconds
