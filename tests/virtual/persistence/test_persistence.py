"""PS: what is remembered, through the actors: before a restart, across an outage, across a restart of us."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.virtual.conftest import SystemFactory
from tests.virtual.simulated_system import Listener, SimulatedSystem, W, ids, lives, uptimes, worker, workers

from rekindle.actors import store_writer
from rekindle.actors.errors import StoreOwnedError, StoreUnavailableError
from rekindle.actors.facts.health_status import Status
from rekindle.actors.facts.jobs import JobSettled
from rekindle.actors.facts.records import DeathRecord, HealthMirrored, Record
from rekindle.actors.messages import (
    AddWorker,
    PauseWorkers,
    RemoveWorker,
    ResetWorker,
    ResumeWorkers,
    StoodDown,
    StopWorkers,
    StoreDegraded,
    StoreRecovered,
    WorkerDied,
)
from rekindle.actors.messages.internal.to_persistence import Flush, Flushed
from rekindle.actors.rules import waiting_records
from rekindle.actors.simulation import Behaviour, Script, crashes_after, dies_after, runs
from rekindle.actors.spec.policies.alert_policy import AlertPolicy
from rekindle.actors.spec.policies.restart_policy import WindowMode
from rekindle.persistence import MemoryStore

LOCKED = StoreUnavailableError("database is locked")


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


def test_a_restart_without_delay_waits_two_seconds_for_the_store(new_system: SystemFactory) -> None:
    system = new_system(worker(preset="plugin"), scripts=uptimes(3))
    system.memory.fault = LOCKED
    system.start().run(60)
    assert system.starts() == [0, 5]


def test_a_restart_after_16_seconds_comes_after_16_seconds_without_the_store(
    new_system: SystemFactory,
) -> None:
    system = new_system(worker(restart={"initial_delay_s": 16.0}), scripts=uptimes(3))
    system.memory.fault = LOCKED
    system.start().run(60)
    assert system.starts() == [0, 19]


def test_a_restart_begins_as_soon_as_the_store_is_back_within_the_two_seconds(
    new_system: SystemFactory,
) -> None:
    system = new_system(worker(preset="plugin"), scripts=uptimes(3)).start()
    system.run_to(2)
    system.memory.fault = LOCKED
    system.run_to(3.5)
    system.memory.fault = None
    system.run(60)
    assert system.starts() == [0, 4]  # the first retry, a second after the death


def test_ps_13_the_write_is_tried_again_after_1_2_4_8_16_16_seconds(new_system: SystemFactory) -> None:
    store = Journal()
    system = journalled(new_system(scripts=crashes_after(1000), store=store), store)
    system.start().run_to(999)
    store.fault = LOCKED
    system.run_to(1000)
    system.processes.scripts[W] = lives(runs())
    system.run_to(1090)
    assert [at - 1000 for at in store.tries_of_deaths()] == [0, 1, 3, 7, 15, 31, 47, 63, 79]


def test_ps_13_a_failed_worker_is_not_restarted_while_its_failure_cannot_be_written(
    new_system: SystemFactory,
) -> None:
    system = new_system(worker(restart={"max_lifetime": 1}), scripts=crashes_after(3)).start()
    system.run_to(5)
    system.memory.fault = LOCKED
    system.run(600)
    assert (system.starts(), system.status().shown) == ([0, 4], "failed")
    assert system.stored().failed_at_wall_ms is None
    system.memory.fault = None
    system.run(16)
    assert system.stored().failed_at_wall_ms is not None


def test_ps_13_the_actors_answer_at_once_while_the_store_is_away(new_system: SystemFactory) -> None:
    system = new_system(*workers(2), scripts={ids(2)[0]: uptimes(3)})
    system.memory.fault = LOCKED
    system.start().run_to(3.2)
    before = system.now
    assert system.status(ids(2)[1]).status is Status.HEALTHY
    assert system.stop(ids(2)[1])[0].gone
    assert system.now == before


def test_ps_13_every_listener_is_notified_that_the_store_is_away_and_that_it_is_back(
    new_system: SystemFactory,
) -> None:
    system = new_system(scripts=uptimes(3)).start()
    system.run_to(2)
    system.memory.fault = LOCKED
    system.run_to(8)
    system.memory.fault = None
    system.run(60)
    degraded = [(at, event.reason) for at, event in system.events(StoreDegraded)]
    assert degraded == [(3, str(LOCKED))]  # once, however often it is tried again
    assert [at for at, _ in system.events(StoreRecovered)] == [10]


def test_ps_13_the_report_shows_what_is_unsaved(new_system: SystemFactory) -> None:
    system = new_system(scripts=uptimes(3)).start()
    system.run_to(2)
    assert (system.report().unsaved, system.report().degraded) == (0, None)
    system.memory.fault = LOCKED
    system.run_to(5)
    assert (system.report().unsaved, system.report().degraded) == (1, str(LOCKED))
    system.memory.fault = None
    system.run(60)
    assert (system.report().unsaved, system.report().degraded) == (0, None)


def test_ps_13_everything_is_caught_up_after_the_outage(new_system: SystemFactory) -> None:
    system = new_system(*workers(3), scripts=crashes_after(3)).start()
    system.run_to(5)
    system.memory.fault = LOCKED
    system.tell(PauseWorkers((ids(3)[2],)))
    system.run(600)
    assert [system.stored(id_).restart_count for id_ in ids(3)] == [1, 1, 1]
    system.memory.fault = None
    system.run(16)
    assert [system.stored(id_).restart_count for id_ in ids(3)] == [5, 5, 1]
    assert len(system.memory.deaths(ids(3)[0])) == 6
    assert system.memory.load().meta[f"worker_enabled:{ids(3)[2]}"] == "false"


def test_f19_no_count_is_lost_in_an_outage_that_outgrows_the_memory_for_it(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_records, "MOST_WAITING", 50)
    tireless = {"max_in_window": None, "max_lifetime": None, "max_delay_s": 2.0}
    system = new_system(*workers(3, restart=tireless), scripts=crashes_after(1)).start()
    system.run_to(10)
    system.memory.fault = LOCKED
    system.run(600)
    for id_ in ids(3):
        system.tell(StopWorkers((id_,)))
    decided = [each.restart_count for each in system.report().workers]
    system.memory.fault = None
    system.run(20)
    assert [system.stored(id_).restart_count for id_ in ids(3)] == decided
    assert [system.stored(id_).streak_count for id_ in ids(3)] == decided
    assert min(decided) > 150
    # Deaths whose rows were given up are answered for as well.
    assert (system.report().unsaved, system.report().degraded) == (0, None)


def test_f19_a_crash_loop_with_alerts_does_not_fill_the_memory_in_an_outage(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_records, "MOST_WAITING", 50)
    tireless = {"max_in_window": None, "max_lifetime": None, "max_delay_s": 2.0}
    system = new_system(worker(restart=tireless), scripts=crashes_after(1), alerts=AlertPolicy()).start()
    system.memory.fault = LOCKED
    system.run(600)
    assert len(system.deaths()) > 150
    assert flushed(system) <= 51
    system.memory.fault = None
    system.run(20)
    (alert,) = (each for each in system.memory.alerts() if each.component_id == W)
    assert alert.occurrences >= len(system.deaths()) - 20


def test_f19_a_streak_that_was_cleared_in_a_long_outage_is_cleared_in_the_store(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_records, "MOST_WAITING", 10)
    # The sustained health is noticed by the death itself: the reset is in its record.
    resting = lives(*[dies_after(1)] * 3, dies_after(60), *[dies_after(1)] * 20, runs())
    policy = {"max_consecutive": None, "reset_after_healthy_s": 60.0}
    system = new_system(worker(preset="plugin", restart=policy), scripts=resting).start()
    system.run_to(7)
    assert system.stored().streak_count == 3
    system.memory.fault = LOCKED
    system.run(1000)
    status = system.status()
    system.memory.fault = None
    system.run(20)
    assert (system.stored().restart_count, system.stored().streak_count) == (
        status.restart_count,
        status.streak_count,
    )


def test_f24_a_supervisor_whose_store_another_one_took_over_stands_down_once_and_writes_no_more(
    new_system: SystemFactory,
) -> None:
    system = new_system(*workers(2)).start()
    system.run_to(5)
    system.memory.fault = StoreOwnedError("the store is in use by another supervisor")
    system.tell(PauseWorkers((W,)))
    system.run(600)
    assert [event.reason for _, event in system.events(StoodDown)] == [str(system.memory.fault)]
    assert not system.processes.alive(W)
    assert system.report().degraded == str(system.memory.fault)
    # The other one has ended meanwhile; what it wrote is not ours to overwrite.
    system.memory.fault = None
    system.run(600)
    assert "worker_enabled:" + W not in system.memory.load().meta
    assert system.events(StoreRecovered) == []
    assert flushed(system) > 0


def test_an_application_that_ends_after_an_outage_writes_what_it_can(new_system: SystemFactory) -> None:
    system = new_system(scripts=uptimes(3)).start()
    system.run_to(2)
    system.memory.fault = LOCKED
    system.run_to(3.5)
    assert flushed(system) == 1
    system.memory.fault = None
    assert flushed(system) == 0
    assert system.stored().restart_count == 1


def flushed(system: SimulatedSystem) -> int:
    """How many records could not be written."""
    listener = Listener(system.runtime.clock.monotonic)
    system.actors.persistence.tell(Flush(listener))
    system.runtime.settle()
    (answer,) = listener.messages
    assert isinstance(answer, Flushed)
    return answer.unsaved


def test_a_restart_from_memory_is_counted_once_when_the_store_comes_back(new_system: SystemFactory) -> None:
    system = new_system(scripts=uptimes(3)).start()
    system.run_to(2)
    system.memory.fault = LOCKED
    system.run_to(40)
    system.memory.fault = None
    system.run(60)
    assert len(system.events(WorkerDied)) == len(system.memory.deaths(W)) == 1
    assert system.stored().restart_count == 1
    assert system.starts() == [0, 5]


def test_a_removed_worker_leaves_no_mirror_behind_after_an_outage(new_system: SystemFactory) -> None:
    system = new_system().start()
    system.run(10)
    system.memory.fault = LOCKED
    system.processes.kill(W)
    system.run(5)
    system.tell(RemoveWorker(W))
    system.memory.fault = None
    system.run(20)
    assert system.memory.health == {}


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


def test_generations_continue_with_the_time_while_none_can_be_reserved(new_system: SystemFactory) -> None:
    """Two supervisors that could not write began with the same number."""
    system = new_system().start()
    system.run(1)
    seen = [system.status().generation]
    system.memory.fault = LOCKED
    for _ in range(2):
        system.restart_application(away_s=1)
        system.start().run(1)
        seen.append(system.status().generation)
    system.memory.fault = None
    system.run(30)
    system.restart_application()
    system.start().run(1)
    seen.append(system.status().generation)
    assert seen == sorted(set(seen))


def test_a_worker_that_is_added_back_in_an_outage_uses_no_generation_twice(new_system: SystemFactory) -> None:
    """Its numbers were reserved by the runs that declared it only."""
    first, second = worker(), worker("worker:other:0")
    system = new_system(first, second).start()
    system.run(1)
    system.tell(RemoveWorker(second.id))
    system.run(60)
    seen = []
    system.specs = (first,)
    for fault in (LOCKED, None):
        system.memory.fault = None
        system.restart_application()
        system.start().run(1)
        system.memory.fault = fault
        system.tell(AddWorker(second))
        system.run(1)
        seen.append(system.status(second.id).generation)
    assert 1 < seen[0] < seen[1]
