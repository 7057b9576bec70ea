"""The store is away: supervision goes on from memory, and everything is caught up afterwards."""

from __future__ import annotations

import pytest
from tests.virtual.conftest import SystemFactory
from tests.virtual.persistence.test_persistence import Journal, journalled
from tests.virtual.simulated_system import Listener, SimulatedSystem, W, ids, lives, uptimes, worker, workers

from rekindle.actors.errors import StoreOwnedError, StoreUnavailableError
from rekindle.actors.facts.health_status import Status
from rekindle.actors.messages import (
    AddWorker,
    PauseWorkers,
    RemoveWorker,
    StoodDown,
    StopWorkers,
    StoreDegraded,
    StoreRecovered,
    WorkerDied,
)
from rekindle.actors.messages.internal.to_persistence import Flush, Flushed
from rekindle.actors.rules import waiting_records
from rekindle.actors.simulation import crashes_after, dies_after, runs
from rekindle.actors.spec.policies.alert_policy import AlertPolicy

LOCKED = StoreUnavailableError("database is locked")


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
