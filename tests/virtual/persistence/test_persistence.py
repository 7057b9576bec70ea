"""PS: what is remembered, through the actors: before a restart, across an outage, across a restart of us."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.virtual.conftest import SystemFactory
from tests.virtual.simulated_system import SimulatedSystem, W, ids, uptimes, worker, workers

from rekindle.actors import store_writer
from rekindle.actors.facts.health_status import Status
from rekindle.actors.facts.jobs import JobSettled
from rekindle.actors.facts.records import DeathRecord, HealthMirrored, Record
from rekindle.actors.messages import (
    PauseWorkers,
    ResetWorker,
    ResumeWorkers,
    StopWorkers,
    WorkerDied,
)
from rekindle.actors.simulation import Behaviour, Script, crashes_after, dies_after, runs
from rekindle.actors.spec.policies.restart_policy import WindowMode
from rekindle.persistence import MemoryStore


class Journal(MemoryStore):
    """A store in memory that notes every attempt to write."""

    def __init__(self) -> None:
        super().__init__()
        self.attempts: list[tuple[float, tuple[Record, ...]]] = []
        self.system: SimulatedSystem | None = None

    def commit(self, records: Sequence[Record]) -> tuple[JobSettled, ...]:
        """Note the attempt, then write."""
        self.attempts.append((0.0 if self.system is None else self.system.now, tuple(records)))
        return super().commit(records)

    def tries_of_deaths(self) -> list[float]:
        """When it was tried to write a death."""
        return [at for at, records in self.attempts if any(isinstance(each, DeathRecord) for each in records)]


def journalled(system: SimulatedSystem, store: Journal) -> SimulatedSystem:
    store.system = system
    return system


# ── Across a restart of the application ──────────────────────────────────────────────────


def test_ps_08_the_delays_go_on_where_the_former_run_left_them(new_system: SystemFactory) -> None:
    system = new_system(scripts=uptimes(3, 3, 3)).start()
    system.run(30)
    system.restart_application(away_s=3600)
    system.processes.scripts[W] = dies_of(system, 3)
    system.start().run(100)
    assert system.delays()[0] == 8
    assert system.deaths()[0].restart_count == 4


def dies_of(system: SimulatedSystem, seconds: float) -> Script:
    """Only the next incarnation dies, after this time."""
    first = system.status().generation + 1
    return lambda generation: dies_after(seconds) if generation == first else runs()


def test_ps_09_a_full_window_is_remembered(new_system: SystemFactory) -> None:
    system = new_system(scripts=uptimes(3, 3, 3, 3, 3)).start()
    system.run_to(50)
    assert system.stored().streak_count == 5
    system.restart_application(away_s=100)
    system.start().run(1)
    system.processes.kill(W)
    system.run(60)
    assert [death.action for death in system.deaths()] == ["mark_failed"]


def test_ps_09_a_window_that_has_passed_meanwhile_does_not_fail_the_worker(new_system: SystemFactory) -> None:
    system = new_system(scripts=uptimes(3, 3, 3, 3, 3)).start()
    system.run_to(50)
    system.restart_application(away_s=300)
    system.start().run(1)
    system.processes.kill(W)
    system.run(60)
    assert system.delays() == [32]


UP_FOR_S = 10 * 3600.0
"""How long the machine was up before it was rebooted: the new clock never gets near the old one."""


def rebooted(new_system: SystemFactory, mode: WindowMode, *, away_s: float) -> list[WorkerDied]:
    """What becomes of a worker that dies twice before a reboot, and a third time after it."""
    policy = {"window_mode": mode, "max_in_window": 2, "window_s": 300.0}
    system = new_system(worker(restart=policy), scripts=uptimes(UP_FOR_S, 3)).start()
    system.run_to(UP_FOR_S + 60)
    assert [death.action for death in system.deaths()] == ["restart", "restart"]
    system.restart_application(away_s=away_s)
    assert system.now == 0
    system.start().run(1)
    system.processes.kill(W)
    system.run(60)
    return system.deaths()


@pytest.mark.parametrize("mode", WindowMode)
def test_f15_what_counted_before_a_reboot_counts_after_it(
    new_system: SystemFactory, mode: WindowMode
) -> None:
    (death,) = rebooted(new_system, mode, away_s=30)
    assert (death.action, death.restart_count) == ("mark_failed", 2)


@pytest.mark.parametrize("mode", WindowMode)
def test_f15_what_is_older_than_the_window_counts_no_longer_after_a_reboot(
    new_system: SystemFactory, mode: WindowMode
) -> None:
    (death,) = rebooted(new_system, mode, away_s=6 * 3600)
    assert (death.action, death.restart_count) == ("restart", 3)


def test_ps_10_a_failed_worker_stays_failed_with_its_reason(new_system: SystemFactory) -> None:
    system = new_system(worker(restart={"max_lifetime": 1}), scripts=crashes_after(3)).start()
    system.run(60)
    reason = system.status().failure_reason
    system.restart_application(away_s=3600)
    system.start().run(60)
    assert system.starts() == []
    assert (system.status().shown, system.status().failure_reason) == ("failed", reason)
    assert system.memory.health[W].status == "failed"


def test_a_reset_failure_does_not_come_back_with_the_application(new_system: SystemFactory) -> None:
    system = new_system(worker(restart={"max_lifetime": 1}), scripts=uptimes(3, 3)).start()
    system.run(60)
    system.tell(ResetWorker(W))
    system.restart_application()
    system.start().run(60)
    assert system.status().status is Status.HEALTHY


def test_a_delay_that_was_not_over_is_waited_for_after_the_restart(new_system: SystemFactory) -> None:
    system = new_system(scripts=uptimes(3, 3, 3, 3, 3)).start()
    system.run_to(32)  # dead since 30, due at 46
    system.restart_application(away_s=2)
    system.start()
    assert system.status().next_attempt_in_s == 12
    system.run(60)
    assert system.starts() == [12]
    assert system.status().restart_count == system.stored().restart_count == 5


def test_a_delay_that_was_over_meanwhile_is_not_waited_for(new_system: SystemFactory) -> None:
    system = new_system(scripts=uptimes(3, 3, 3, 3, 3)).start()
    system.run_to(32)
    system.restart_application(away_s=14)
    assert system.start().starts() == [0]


@pytest.mark.parametrize("jump_ms", [-365 * 24 * 3_600_000, 365 * 24 * 3_600_000])
def test_f16_a_wall_clock_that_was_set_meanwhile_makes_no_worker_wait_longer_than_the_policy(
    new_system: SystemFactory, jump_ms: int
) -> None:
    system = new_system(scripts=uptimes(3, 3, 3, 3, 3)).start()
    system.run_to(32)
    system.runtime.virtual_clock.set_wall(jump_ms)
    system.restart_application()
    system.start().run(61)
    assert len(system.starts()) == 1
    assert system.starts()[0] <= 60


def test_a_delay_is_not_waited_for_by_an_operator_who_starts_the_worker_twice(
    new_system: SystemFactory,
) -> None:
    system = new_system(scripts=uptimes(3, 3, 3, 3, 3)).start()
    system.run_to(32)
    system.restart_application()
    system.start().run(1)
    system.start(W).run(60)
    assert system.starts() == [1]


@pytest.mark.parametrize("ends_by_itself", [False, True])
def test_a_delay_of_the_former_run_ends_with_a_pause_as_one_of_this_run_does(
    new_system: SystemFactory, ends_by_itself: bool
) -> None:
    """The resume of a worker that was paused waited out the delay that the former supervisor had decided."""
    system = new_system(scripts=uptimes(3, 3, 3, 3, 3)).start()
    system.run_to(32)  # dead since 30, due at 46
    system.tell(PauseWorkers((W,), for_s=7 if ends_by_itself else None))
    system.run(1)
    system.restart_application(away_s=2)
    system.start().run_to(4)
    if not ends_by_itself:
        system.tell(ResumeWorkers((W,)))
    system.run(2)
    assert system.starts() == [4]


def test_ps_15_the_mirror_of_the_former_run_is_wiped_and_the_counters_stay(new_system: SystemFactory) -> None:
    store = MemoryStore()
    store.commit([mirror("gone"), mirror("gone too")])
    system = new_system(scripts=uptimes(3), store=store)
    assert store.health == {}
    system.start().run(10)
    assert set(store.health) == {W}
    system.restart_application()
    assert store.health == {}
    assert system.stored().restart_count == 1


def test_the_mirror_says_of_a_stopped_worker_that_it_is_stopped(new_system: SystemFactory) -> None:
    system = new_system(*workers(2)).start()
    system.run(5)
    assert {each.status for each in system.memory.health.values()} == {"healthy"}
    system.stop(W)
    system.run(5)
    told = system.memory.health[W]
    assert (told.status, told.pid, told.generation) == ("stopped", None, 1)
    assert system.memory.health[ids(2)[1]].status == "healthy"
    system.start(W).run(5)
    assert (system.memory.health[W].status, system.memory.health[W].generation) == ("healthy", 2)


def test_ps_16_an_old_heartbeat_in_the_mirror_causes_no_death(new_system: SystemFactory) -> None:
    system = new_system().start()
    system.run(10)
    system.memory.commit([mirror(W)])
    system.run(100)
    assert system.changes() == [(0, Status.HEALTHY)]


def mirror(id_: str) -> HealthMirrored:
    return HealthMirrored(
        component_id=id_, generation=1, status="healthy", pid=1, current_job=None, last_heartbeat_wall_ms=1
    )


# ── Written before it is acted on ────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", range(10))
def test_a_death_is_in_the_store_before_its_restart_begins(new_system: SystemFactory, seed: int) -> None:
    store = MemoryStore()
    kept: list[int] = []

    def script(generation: int) -> Behaviour:
        kept.append(len(store.deaths(W)))
        return dies_after(1)

    new_system(worker(preset="plugin"), scripts=script, store=store, seed=seed).start().run(60)
    assert kept == [0, 1, 2, 3, 4, 5]


def test_a_death_is_written_in_the_moment_in_which_it_happens(new_system: SystemFactory) -> None:
    store = Journal()
    system = journalled(new_system(scripts=uptimes(3, 3), store=store), store)
    system.start().run(60)
    assert store.tries_of_deaths() == [3, 7]


# ── Without the store ────────────────────────────────────────────────────────────────────


def test_a_clock_that_is_set_a_year_forward_makes_no_history_old(new_system: SystemFactory) -> None:
    """Old rows are deleted, but not because the clock suddenly jumps ahead."""
    system = new_system(scripts=uptimes(3, 3)).start()
    system.run(60)
    system.runtime.virtual_clock.wall_offset_ms += 365 * 86_400_000
    system.run(2 * store_writer.PRUNE_AFTER_S)
    assert [death.generation for death in system.memory.deaths(W)] == [2, 1]
    events = system.memory.events(limit=1000).events
    assert "worker_died" in {event.type for event in events}


def test_generations_go_on_though_the_last_one_left_no_death(new_system: SystemFactory) -> None:
    """They are the names of lives: two of one name could not be distinguished."""
    system = new_system(scripts=uptimes(3)).start()
    system.run(60)
    assert system.status().generation == 2
    system.restart_application()  # killed with it: no death of the second is stored
    system.start().run(60)
    assert system.status().generation == 101
    system.tell(StopWorkers())
    system.run(60)
    for _ in range(2):  # stopped, and never started again by two runs
        system.restart_application()
    system.start().run(60)
    assert system.status().generation == 301
