"""HM: every worker's health, as the HealthMonitor actor tells it, with exact times."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import pytest
from tests.virtual.conftest import SystemFactory
from tests.virtual.simulated_system import SimulatedSystem, W, ids, lives, worker, workers

from rekindle.actors.deaths.death import Cause, Exit
from rekindle.actors.errors import StoreUnavailableError
from rekindle.actors.facts.frames import Frame
from rekindle.actors.facts.health_status import Status
from rekindle.actors.facts.jobs import JobSettled
from rekindle.actors.facts.records import Record
from rekindle.actors.messages import (
    PauseWorkers,
    ResumeWorkers,
    StatusChanged,
    WorkerFailed,
)
from rekindle.actors.messages.internal.to_monitor import (
    ChannelClosed,
    FrameReceived,
    MarkFailed,
    Register,
)
from rekindle.actors.messages.internal.to_proxy import ProcessExited
from rekindle.actors.simulation import Behaviour, crashes_after
from rekindle.actors.spec.policies.health_policy import HealthPolicy
from rekindle.actors.spec.program import command
from rekindle.actors.spec.worker_spec import PauseMode, WorkerSpec
from rekindle.persistence import MemoryStore

SILENT = lives(Behaviour(healthy_after=None))
"""A process that says only what the test lets it say."""

HOUR_MS = 3_600_000
YEAR_MS = 365 * 24 * HOUR_MS

PENDING, HEALTHY, UNHEALTHY, RECOVERING, DEAD, FAILED = Status


def observed(**health: object) -> WorkerSpec:
    """A worker that is watched and never restarted."""
    return worker(restart={"enabled": False}, health=health)


def say(system: SimulatedSystem, *frames: tuple[float, str] | tuple[float, Frame]) -> None:
    """Have the worker send frames, each at its moment."""
    for moment, frame in frames:
        system.run_to(moment)
        system.processes.say(W, frame if isinstance(frame, Frame) else Frame(status=frame))  # type: ignore[arg-type]
    system.run(0)


def test_hm_01_a_registration_is_pending_and_notifies_no_listener(new_system: SystemFactory) -> None:
    system = new_system(observed(), scripts=SILENT).start()
    system.run(59.9)
    assert system.status().status is PENDING
    assert system.changes() == []


def test_hm_02_the_first_healthy_frame_is_reported_once(new_system: SystemFactory) -> None:
    system = new_system(observed(), scripts=SILENT).start()
    say(system, (7, "healthy"))
    changed = system.events(StatusChanged)
    assert [(at, event.old, event.new) for at, event in changed] == [(7, PENDING, HEALTHY)]


def test_hm_03_a_worker_that_says_nothing_for_60_seconds_is_dead(new_system: SystemFactory) -> None:
    system = new_system(observed(), scripts=SILENT).start()
    system.run(300)
    ((at, event),) = system.events(StatusChanged)
    assert (at, event.new, event.misses) == (60, DEAD, 0)
    assert system.deaths()[0].death.cause is Cause.STARTUP_TIMEOUT


def test_hm_04_pending_frames_do_not_prolong_the_startup(new_system: SystemFactory) -> None:
    system = new_system(observed(), scripts=SILENT).start()
    say(system, *((float(moment), "pending") for moment in range(1, 60)))
    system.run(300)
    assert system.changes() == [(60, DEAD)]


def test_hm_05_silence_makes_unhealthy_at_one_miss_and_dead_at_three(new_system: SystemFactory) -> None:
    system = new_system(observed(), scripts=SILENT).start()
    say(system, (1, "healthy"))
    system.run(300)
    told = [(at, event.new, event.misses) for at, event in system.events(StatusChanged)]
    assert told == [(1, HEALTHY, 0), (6, UNHEALTHY, 1), (16, DEAD, 3)]


def test_hm_06_a_healthy_frame_after_two_misses_asks_for_three_new_ones(new_system: SystemFactory) -> None:
    system = new_system(observed(), scripts=SILENT).start()
    say(system, (1, "healthy"), (12, "healthy"))
    system.run(300)
    assert system.changes() == [(1, HEALTHY), (6, UNHEALTHY), (12, HEALTHY), (17, UNHEALTHY), (27, DEAD)]


def test_hm_07_a_frame_in_the_very_moment_of_the_check_makes_nothing_flap(new_system: SystemFactory) -> None:
    system = new_system(observed(), scripts=SILENT).start()
    for moment in range(0, 100, 5):
        system.processes.say(W, Frame(status="healthy"))
        system.runtime.settle()
        system.run_to(moment + 4.999)
        system.runtime.virtual_clock.now = moment + 5.0
    assert system.changes() == [(0, HEALTHY)]


def test_hm_08_frames_every_six_seconds_flap_and_never_make_dead(new_system: SystemFactory) -> None:
    system = new_system(observed(), scripts=SILENT).start()
    say(system, *((float(moment), "healthy") for moment in range(0, 61, 6)))
    flaps = [((at - 1, UNHEALTHY), (at, HEALTHY)) for at in range(6, 61, 6)]
    assert system.changes() == [(0, HEALTHY), *(change for flap in flaps for change in flap)]


def test_hm_09_repeated_healthy_frames_notify_no_listener(new_system: SystemFactory) -> None:
    system = new_system(observed()).start()
    system.run(3600)
    assert system.changes() == [(0, HEALTHY)]


def test_hm_10_unhealthy_frames_do_not_stop_the_misses(new_system: SystemFactory) -> None:
    system = new_system(observed(), scripts=SILENT).start()
    say(system, (1, "healthy"), *((float(moment), "unhealthy") for moment in range(2, 16)))
    system.run(60)
    assert system.changes() == [(1, HEALTHY), (2, UNHEALTHY), (16, DEAD)]
    death = system.deaths()[0].death
    assert (death.cause, str(death)) == (Cause.UNHEALTHY, "unhealthy (for 15 s)")


def test_hm_10_a_worker_that_reports_a_problem_and_then_falls_silent_is_told_as_silent(
    new_system: SystemFactory,
) -> None:
    system = new_system(observed(), scripts=SILENT).start()
    say(system, (1, "healthy"), (2, "unhealthy"))
    system.run(60)
    assert system.changes() == [(1, HEALTHY), (2, UNHEALTHY), (16, DEAD)]
    assert system.deaths()[0].death.cause is Cause.HEARTBEAT_LOST


def test_hm_11_a_recovery_that_falls_silent_is_dead_when_its_time_is_up(new_system: SystemFactory) -> None:
    system = new_system(observed(), scripts=SILENT).start()
    say(system, (1, "healthy"), (5, Frame(status="recovering", recover_for_s=30)))
    system.run(300)
    assert system.changes() == [(1, HEALTHY), (5, RECOVERING), (35, DEAD)]
    assert system.deaths()[0].death.cause is Cause.RECOVERY_TIMEOUT


def test_hm_12_a_healthy_frame_ends_a_recovery_and_its_deadline(new_system: SystemFactory) -> None:
    system = new_system(observed(staleness_s=None), scripts=SILENT).start()
    say(system, (1, "healthy"), (5, Frame(status="recovering", recover_for_s=30)), (20, "healthy"))
    system.run(300)
    assert system.changes() == [(1, HEALTHY), (5, RECOVERING), (20, HEALTHY)]


@pytest.mark.parametrize(("asked", "granted"), [(1, 5), (30, 30), (500, 120), (None, 120), (-3, 5)])
def test_hm_13_the_recovery_time_is_clamped_between_5_and_120_seconds(
    new_system: SystemFactory, asked: float | None, granted: float
) -> None:
    system = new_system(observed(), scripts=SILENT).start()
    say(system, (10, Frame(status="recovering", recover_for_s=asked)))
    system.run(300)
    assert system.changes() == [(10, RECOVERING), (10 + granted, DEAD)]


def test_hm_14_the_reported_time_is_the_one_that_the_worker_asked_for(new_system: SystemFactory) -> None:
    system = new_system(observed(), scripts=SILENT).start()
    say(system, (10, Frame(status="recovering", recover_for_s=500)))
    assert [event.recover_for_s for _, event in system.events(StatusChanged)] == [500]


def test_hm_15_asking_again_and_again_prolongs_a_recovery_to_120_seconds_at_most(
    new_system: SystemFactory,
) -> None:
    system = new_system(observed(), scripts=SILENT).start()
    again = Frame(status="recovering", recover_for_s=30)
    say(system, *((float(moment), again) for moment in range(10, 130, 5)))
    system.run(300)
    assert system.changes() == [(10, RECOVERING), (130, DEAD)]


def test_hm_16_a_recovery_may_begin_before_the_first_healthy_frame(new_system: SystemFactory) -> None:
    system = new_system(observed(), scripts=SILENT).start()
    say(system, (59, Frame(status="recovering")))
    system.run(300)
    assert system.changes() == [(59, RECOVERING), (179, DEAD)]


REACH: dict[str, tuple[tuple[float, str], ...]] = {
    "pending": (),
    "healthy": ((6, "healthy"),),
    "unhealthy": ((5, "healthy"), (6, "unhealthy")),
    "recovering": ((6, "recovering"),),
}


@pytest.mark.parametrize("before", REACH)
def test_hm_17_the_end_of_a_process_is_reported_once_from_every_status(
    new_system: SystemFactory, before: str
) -> None:
    system = new_system(observed(), scripts=SILENT).start()
    say(system, *REACH[before])
    system.run_to(7)
    told = len(system.changes())
    system.processes.kill(W)
    system.run(1)
    for message in (ChannelClosed(W, 1), ProcessExited(W, 1, Exit(signal=9))):
        system.actors.monitor.tell(message)
    system.run(1)
    assert system.changes()[told:] == [(7, DEAD)]


def test_hm_18_the_end_of_a_dead_or_failed_worker_is_not_reported(new_system: SystemFactory) -> None:
    system = new_system(observed(), scripts=SILENT).start()
    system.run(70)
    told = system.changes()
    system.actors.monitor.tell(ProcessExited(W, 1, Exit(code=1)))
    system.actors.monitor.tell(ChannelClosed(W, 1))
    system.run(5)
    assert system.changes() == told == [(60, DEAD)]


def test_hm_19_a_late_healthy_frame_does_not_wake_the_dead(new_system: SystemFactory) -> None:
    system = new_system(observed(), scripts=SILENT).start()
    system.run(70)
    system.actors.monitor.tell(FrameReceived(W, 1, Frame(status="healthy")))
    system.run(5)
    assert system.changes() == [(60, DEAD)]
    assert system.status().status is DEAD


def test_hm_20_a_worker_is_marked_failed_once_and_reports_nothing_afterwards(
    new_system: SystemFactory,
) -> None:
    system = new_system(observed(), scripts=SILENT).start()
    say(system, (1, "healthy"))
    for message in (
        MarkFailed(W),
        MarkFailed(W),
        FrameReceived(W, 1, Frame(status="healthy")),
        ChannelClosed(W, 1),
        ProcessExited(W, 1, Exit(code=1)),
    ):
        system.actors.monitor.tell(message)
    system.run(100)
    assert system.changes() == [(1, HEALTHY), (1, FAILED)]


def test_hm_28_without_the_store_every_status_is_reported_as_with_it(new_system: SystemFactory) -> None:
    def changes(fault: Exception | None) -> list[tuple[float, Status]]:
        system = new_system(observed(), scripts=lives(Behaviour(heartbeat=inf)))
        system.memory.fault = fault
        system.start().run(100)
        return system.changes()

    assert changes(StoreUnavailableError("database is locked")) == changes(None)


@pytest.mark.parametrize("jump_ms", [HOUR_MS, -HOUR_MS, YEAR_MS, -YEAR_MS])
def test_hm_29_f16_a_jump_of_the_wall_clock_changes_nothing(new_system: SystemFactory, jump_ms: int) -> None:
    def history(jump_ms: int) -> tuple[list[tuple[float, object]], list[tuple[float, str, int]]]:
        system = new_system(*workers(3, preset="patient"), scripts=crashes_after(7)).start()
        for moment in (3, 7.5, 20, 40, 300):
            system.run_to(moment)
            system.runtime.virtual_clock.set_wall(jump_ms)
        system.run(600)
        return system.listener.received, system.processes.starts

    assert history(jump_ms) == history(0)


def test_hm_30_a_paused_worker_that_falls_silent_is_not_dead(new_system: SystemFactory) -> None:
    system = new_system(worker(pause_mode=PauseMode.IDLE)).start()
    system.run(10)
    system.tell(PauseWorkers())
    system.processes.freeze(W)
    system.run(3600)
    assert system.changes() == [(0, HEALTHY)]


def test_hm_30_silence_counts_again_from_the_end_of_the_pause(new_system: SystemFactory) -> None:
    system = new_system(worker(pause_mode=PauseMode.IDLE, restart={"enabled": False})).start()
    system.run(10)
    system.tell(PauseWorkers())
    system.processes.freeze(W)
    system.run_to(1000)
    system.tell(ResumeWorkers())
    system.run(60)
    assert system.changes() == [(0, HEALTHY), (1005, UNHEALTHY), (1015, DEAD)]


def test_hm_31_every_registered_worker_has_a_status(new_system: SystemFactory) -> None:
    system = new_system(*workers(5)).start()
    system.run(1)
    known = [(each.component_id, each.status) for each in system.report().workers]
    assert known == [(id_, HEALTHY) for id_ in ids(5)]
    assert set(system.memory.health) == set(ids(5))


def test_a_frozen_worker_is_distinguished_from_a_busy_one(new_system: SystemFactory) -> None:
    system = new_system(observed()).start()
    system.run(1)
    system.processes.freeze(W)
    system.run(60)
    assert "stopped" in system.deaths()[0].death.detail


def test_a_registration_that_is_repeated_changes_nothing(new_system: SystemFactory) -> None:
    system = new_system(observed()).start()
    system.run(50)
    system.actors.monitor.tell(Register(W, 1, HealthPolicy(), reports_health=True))
    system.run(100)
    assert system.changes() == [(0, HEALTHY)]
    assert system.events(WorkerFailed) == []


class Counting(MemoryStore):
    """Counts commits."""

    commits = 0

    def commit(self, records: Sequence[Record]) -> tuple[JobSettled, ...]:
        self.commits += 1
        return super().commit(records)


def test_the_mirror_shows_a_heartbeat_of_the_last_half_minute_for_one_commit_in_that_time() -> None:
    store = Counting()
    system = SimulatedSystem(*workers(20), store=store).start()
    system.run(60)
    before, ages = store.commits, []
    for _ in range(60):
        system.run(7)
        now = system.runtime.clock.wall_ms()
        ages += [now - (each.last_heartbeat_wall_ms or 0) for each in store.health.values()]
    assert len(ages) == 20 * 60
    assert max(ages) <= 30_000
    assert store.commits - before <= 420 / 25 + 1
    assert {each.heartbeat_age_s is not None for each in system.report().workers} == {True}


def test_workers_that_send_no_heartbeats_cause_no_commit() -> None:
    store = Counting()
    system = SimulatedSystem(worker(run=command("serve")), store=store).start()
    system.run(60)
    before = store.commits
    system.run(3600)
    assert store.commits == before
