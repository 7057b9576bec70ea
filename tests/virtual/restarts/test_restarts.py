"""RD and BO: what becomes of dead workers, through all actors, with the exact times of their starts."""

from __future__ import annotations

import pytest
from tests.virtual.conftest import SystemFactory
from tests.virtual.simulated_system import Listener, W, lives, uptimes, worker

from rekindle.actors.deaths.death import Cause, Exit
from rekindle.actors.facts.health_status import Status
from rekindle.actors.facts.topic_states import WorkerState
from rekindle.actors.messages import (
    StartWorkers,
    StateChanged,
    StatusChanged,
    StopWorkers,
    WorkerDied,
    WorkerFailed,
)
from rekindle.actors.messages.internal.to_broker import Subscribe
from rekindle.actors.simulation import Behaviour, cannot_be_spawned, crashes_after, dies_after, runs
from rekindle.actors.spec.policies.alert_policy import AlertPolicy

A, B = "worker:tag:0", "worker:tag:1"
MINUTE = 60.0


def test_rd_09_a_tight_crash_loop_is_restarted_five_times_with_doubling_delays(
    new_system: SystemFactory,
) -> None:
    system = new_system(scripts=crashes_after(3)).start()
    system.run(3600)
    assert system.starts() == [0, 4, 9, 16, 27, 46]
    assert system.delays() == [1, 2, 4, 8, 16]


def test_rd_09_the_sixth_death_of_a_tight_crash_loop_is_final(new_system: SystemFactory) -> None:
    system = new_system(scripts=crashes_after(3)).start()
    system.run(3600)
    assert [at for at, _ in system.events(WorkerFailed)] == [49]
    assert system.status().shown == "failed"
    assert system.status().restart_count == 5
    assert "5 restarts in 5 minutes" in str(system.status().failure_reason)


def test_rd_10_one_crash_every_ten_minutes_gets_twenty_restarts(new_system: SystemFactory) -> None:
    system = new_system(scripts=crashes_after(10 * MINUTE)).start()
    system.run(24 * 3600)
    assert system.delays() == [1, 2, 4, 8, 16, 32] + [60] * 14
    assert [death.action for death in system.deaths()] == ["restart"] * 20 + ["mark_failed"]
    assert "20 restarts in its lifetime" in str(system.status().failure_reason)


def test_rd_11_five_restarts_long_ago_leave_one_more_and_no_second_within_the_window(
    new_system: SystemFactory,
) -> None:
    script = uptimes(3, 3, 3, 3, 3, 1000, 28, 1000)
    system = new_system(scripts=script).start()
    system.run(3600)
    assert system.delays()[5:] == [32]
    first, second = (at for at, _ in system.events(WorkerDied)[5:])
    assert second - first == 60
    assert system.status().shown == "failed"


def test_rd_14_the_notify_preset_with_restarts_on_notifies_at_the_third_death_in_the_window(
    new_system: SystemFactory,
) -> None:
    system = new_system(worker(preset="notify", restart={"enabled": True}), scripts=crashes_after(10)).start()
    system.run(3600)
    assert system.starts() == [0, 10, 20]
    assert [death.action for death in system.deaths()] == ["restart", "restart", "notify_only"]
    assert system.events(WorkerFailed) == []
    assert system.status().shown == "crashed"


def test_rd_15_the_notify_preset_only_notifies_by_default_and_records_the_death(
    new_system: SystemFactory,
) -> None:
    system = new_system(worker(preset="notify"), scripts=crashes_after(10)).start()
    system.run(3600)
    assert system.starts() == [0]
    assert [death.action for death in system.deaths()] == ["notify_only"]
    assert [each.action.value for each in system.memory.deaths(W)] == ["notify_only"]


def test_rd_16_deaths_slide_out_of_the_notify_presets_window(new_system: SystemFactory) -> None:
    system = new_system(worker(preset="notify", restart={"enabled": True})).start()
    for moment in (0, 300, 599, 601, 1300):
        system.run_to(moment)
        system.start()  # an operator recovers what was only notified of
        system.processes.kill(W)
    system.run(100)
    assert [death.action for death in system.deaths()] == [
        "restart",
        "restart",
        "notify_only",
        "notify_only",
        "restart",
    ]


def test_rd_19_the_plugin_preset_restarts_five_times_at_once_then_with_doubling_delays(
    new_system: SystemFactory,
) -> None:
    system = new_system(worker(preset="plugin"), scripts=crashes_after(3)).start()
    system.run(3600)
    assert system.delays() == [0, 1, 2, 4, 8]
    assert system.status().shown == "failed"
    assert system.stored().restart_count == 5


def test_rd_20_starts_that_fail_use_up_the_attempts_and_the_fourth_is_not_made(
    new_system: SystemFactory,
) -> None:
    spec = worker(preset="plugin", restart={"max_consecutive": 3})
    system = new_system(spec, scripts=lives(cannot_be_spawned("no such file"))).start()
    system.run(3600)
    assert system.starts() == [0, 0, 1, 3]
    assert [each.cause for each in system.memory.deaths(W)] == [Cause.SPAWN_FAILED] * 4
    assert system.stored().restart_count == 3
    assert system.status().shown == "failed"


def test_rd_21_with_restarts_off_a_death_is_reported_and_nothing_else(new_system: SystemFactory) -> None:
    system = new_system(worker(restart={"enabled": False}), scripts=crashes_after(10)).start()
    system.run(3600)
    assert system.starts() == [0]
    assert len(system.deaths()) == 1
    assert (system.status().status, system.status().restart_count) == (Status.DEAD, 0)
    assert system.stored().restart_count == 0


@pytest.mark.parametrize(
    ("end", "starts"),
    [(Exit(code=0), [0]), (Exit(code=1), [0, 6]), (Exit(signal=9), [0, 6])],
    ids=str,
)
def test_rd_22_under_on_failure_only_an_unclean_end_is_followed_by_a_restart(
    new_system: SystemFactory, end: Exit, starts: list[float]
) -> None:
    script = lives(Behaviour(dies_after=5, exit=end.code or 0, signal=end.signal), then=runs())
    system = new_system(worker(restart={"restart_on": "on_failure"}), scripts=script).start()
    system.run(60)
    assert system.starts() == starts


@pytest.mark.parametrize("restart_on", ["on_failure", "never"])
def test_rd_22_a_clean_exit_is_not_a_crash(new_system: SystemFactory, restart_on: str) -> None:
    """It was shown as crashed, and the person on call was called for it."""
    script = lives(dies_after(5, exit=0), then=runs())
    policy = AlertPolicy(enabled=True)
    system = new_system(worker(restart={"restart_on": restart_on}), scripts=script, alerts=policy).start()
    states = Listener(system.runtime.clock.monotonic)
    system.actors.broker.tell(Subscribe(states, ("worker:*",)))
    system.run(60)
    ended = system.status()
    assert (ended.shown, ended.why) == ("stopped", "finished: exited with code 0")
    assert system.memory.alerts() == ()
    last = [each.state for each in states.messages if isinstance(each, StateChanged)][-1]
    assert isinstance(last, WorkerState)
    assert last.status == "stopped"
    system.tell(StartWorkers())
    system.run(60)
    assert system.starts() == [0, 60]


def test_rd_23_under_always_an_unrequested_clean_exit_is_followed_by_a_restart(
    new_system: SystemFactory,
) -> None:
    system = new_system(scripts=lives(dies_after(5, exit=0), then=runs())).start()
    system.run(60)
    assert system.starts() == [0, 6]


def test_rd_24_a_worker_that_was_asked_to_stop_and_exits_with_1_stays_down(new_system: SystemFactory) -> None:
    system = new_system(scripts=lives(Behaviour(dies_after=5, ignores_request=True))).start()
    system.run(3)
    system.tell(StopWorkers())
    system.run(60)
    assert system.starts() == [0]
    assert system.deaths() == []


def test_rd_25_sustained_health_starts_the_delays_afresh_and_keeps_the_lifetime_count(
    new_system: SystemFactory,
) -> None:
    spec = worker(preset="patient", health={"staleness_s": None})
    system = new_system(spec, scripts=uptimes(3, 3, 3, 301)).start()
    system.run(3600)
    assert system.delays() == [1, 2, 4, 1]
    assert system.status().restart_count == 4
    assert (system.stored().restart_count, system.stored().streak_count) == (4, 0)


def test_rd_26_health_that_was_too_short_starts_nothing_afresh(new_system: SystemFactory) -> None:
    spec = worker(preset="patient", health={"staleness_s": None})
    system = new_system(spec, scripts=uptimes(3, 3, 3, 299)).start()
    system.run(330)
    assert system.delays() == [1, 2, 4, 8]
    assert system.stored().streak_count == 4


def test_rd_27_the_first_healthy_frame_after_a_restart_resets_nothing(new_system: SystemFactory) -> None:
    system = new_system(worker(preset="patient"), scripts=uptimes(3, 3)).start()
    system.run(20)
    assert system.status().status is Status.HEALTHY
    assert (system.status().restart_count, system.status().streak_count) == (2, 2)


def test_rd_28_the_lifetime_limit_ends_even_a_worker_that_crashes_every_half_hour(
    new_system: SystemFactory,
) -> None:
    system = new_system(worker(preset="patient"), scripts=crashes_after(30 * MINUTE)).start()
    system.run(24 * 3600)
    assert system.delays() == [1] * 20
    assert len(system.deaths()) == 21
    assert "20 restarts in its lifetime" in str(system.status().failure_reason)


def test_rd_29_a_failed_worker_reports_nothing_more(new_system: SystemFactory) -> None:
    system = new_system(worker(restart={"max_lifetime": 1}), scripts=crashes_after(3)).start()
    system.run(100)
    before = list(system.listener.received)
    last = next(event for _, event in reversed(system.events(StatusChanged)) if event.death is not None)
    system.tell(last)
    system.run(3600)
    assert system.listener.received == before
    assert system.restart_timers() == []


def test_bo_07_the_death_of_one_is_decided_while_another_backs_off(new_system: SystemFactory) -> None:
    long = worker(A, restart={"initial_delay_s": 60.0})
    system = new_system(long, worker(B), scripts={A: uptimes(3), B: uptimes(10)}).start()
    system.run(10)
    assert system.restart_timers(A) == [63]
    assert [(at, death.component_id) for at, death in system.events(WorkerDied)] == [(3, A), (10, B)]
    system.run(60)
    assert (system.starts(A), system.starts(B)) == ([0, 63], [0, 11])


def test_bo_08_the_reset_after_health_belongs_to_one_incarnation(new_system: SystemFactory) -> None:
    spec = worker(preset="plugin", restart={"reset_after_healthy_s": 60.0})
    # Dies at 0 at once, is restarted at 0, crashes at 50, is restarted at 51.
    system = new_system(spec, scripts=uptimes(0, 50)).start()
    system.run_to(60)
    assert system.starts() == [0, 0, 51]
    assert system.status().streak_count == 2
    system.run_to(110.9)
    assert system.status().streak_count == 2
    system.run_to(111)
    assert system.status().streak_count == 0
    assert (system.stored().streak_count, system.stored().restart_count) == (0, 2)
