"""SC: one pending restart per worker, one process per worker, in any order of messages."""

from __future__ import annotations

import signal
from math import inf

import pytest
from tests.virtual.conftest import SystemFactory
from tests.virtual.simulated_system import CRASH, W, ids, lives, uptimes, worker, workers

from rekindle.actors.deaths.death import Action, Cause, Exit
from rekindle.actors.facts.health_status import Status
from rekindle.actors.facts.records import DeathRecord
from rekindle.actors.messages import (
    AddWorker,
    Done,
    PauseWorkers,
    Refused,
    RemoveWorker,
    RestartWorker,
    StartWorkers,
    StatusChanged,
    StopWorkers,
    WorkersStopped,
    WorkerStarted,
    WorkerUnkillable,
)
from rekindle.actors.messages.internal.to_supervisor import BackoffElapsed
from rekindle.actors.simulation import (
    Behaviour,
    cannot_be_spawned,
    crashes_after,
    dies_after,
    runs,
    says_recovering,
)
from rekindle.actors.spec.program import command
from rekindle.persistence import MemoryStore

SILENT = Behaviour(heartbeat=inf)
"""Healthy once, then silent: taken for dead 15 s after its frame, and still there."""


def test_sc_01_a_death_is_counted_and_leaves_one_timer_of_the_delay(new_system: SystemFactory) -> None:
    system = new_system(scripts=uptimes(3, 3)).start()
    system.run_to(7)  # the second death
    assert system.status().restart_count == 2
    assert system.restart_timers() == [9]
    assert system.status().next_attempt_in_s == 2


def test_sc_02_a_second_report_of_a_death_leaves_exactly_one_timer(new_system: SystemFactory) -> None:
    system = new_system(scripts=uptimes(3)).start()
    system.run_to(3.5)
    system.tell(system.events(StatusChanged)[-1][1])
    assert system.restart_timers() == [4]


def test_sc_03_an_incarnation_that_is_reported_dead_a_thousand_times_counts_once(
    new_system: SystemFactory,
) -> None:
    system = new_system(scripts=uptimes(3)).start()
    system.run_to(3.5)
    death = system.events(StatusChanged)[-1][1]
    for _ in range(1000):
        system.actors.supervisor.tell(death)
    system.run(60)
    assert system.starts() == [0, 4]
    assert (system.status().restart_count, system.stored().restart_count) == (1, 1)


def test_sc_04_giving_up_marks_the_worker_failed_keeps_the_reason_and_leaves_no_timer(
    new_system: SystemFactory,
) -> None:
    system = new_system(worker(restart={"max_lifetime": 1}), scripts=crashes_after(3)).start()
    system.run_to(7)
    assert system.changes()[-1] == (7, Status.FAILED)
    assert system.stored().failure_reason == system.status().failure_reason
    assert "1 restart in its lifetime" in str(system.stored().failure_reason)
    assert system.restart_timers() == []


def test_sc_05_a_failure_without_a_reason_is_given_one(new_system: SystemFactory) -> None:
    store = MemoryStore()
    store.commit([failure_without_reason()])
    assert new_system(store=store).status().failure_reason == "Restart limit exceeded"


def failure_without_reason() -> DeathRecord:
    return DeathRecord(
        component_id=W,
        generation=1,
        died_at_wall_ms=1,
        cause=Cause.UNKNOWN,
        exit_code=None,
        signal=None,
        uptime_ms=0,
        job=None,
        action=Action.MARK_FAILED,
        reason="",
    )


@pytest.mark.parametrize("hold", [PauseWorkers(), StopWorkers()], ids=["paused", "stopped"])
def test_sc_06_sc_07_a_timer_that_fires_all_the_same_starts_nothing(
    new_system: SystemFactory, hold: PauseWorkers | StopWorkers
) -> None:
    system = new_system(scripts=uptimes(3)).start()
    system.run_to(3.5)
    system.tell(hold)
    assert system.restart_timers() == []
    system.tell(BackoffElapsed(W, generation=1, attempt=1))
    system.run(60)
    assert system.starts() == [0]
    assert system.status().restart_count == 1


def test_sc_08_a_timer_of_an_older_generation_is_ignored(new_system: SystemFactory) -> None:
    system = new_system(scripts=uptimes(3, 3)).start()
    system.run_to(7.5)
    system.tell(BackoffElapsed(W, generation=1, attempt=1))
    system.tell(BackoffElapsed(W, generation=2, attempt=1))
    system.run(60)
    assert system.starts() == [0, 4, 9]


def test_sc_09_a_spawn_that_fails_is_a_death_and_doubles_the_delay(new_system: SystemFactory) -> None:
    broken = cannot_be_spawned("Permission denied")
    system = new_system(scripts=lives(dies_after(3), broken, broken, runs())).start()
    system.run(60)
    assert system.starts() == [0, 4, 6, 10]
    assert [each.cause for each in reversed(system.memory.deaths(W))] == [
        Cause.EXITED,
        Cause.SPAWN_FAILED,
        Cause.SPAWN_FAILED,
    ]


def test_sc_09_spawns_that_always_fail_end_at_the_limit(new_system: SystemFactory) -> None:
    system = new_system(scripts=lives(cannot_be_spawned("Exec format error"))).start()
    system.run(3600)
    assert system.starts() == [0, 1, 3, 7, 15, 31]
    assert "Exec format error" in str(system.status().failure_reason)


def test_sc_10_a_timer_for_an_unknown_worker_changes_nothing(new_system: SystemFactory) -> None:
    system = new_system().start()
    before = list(system.listener.received)
    system.tell(BackoffElapsed("absent", generation=1, attempt=1))
    assert system.listener.received == before
    assert system.starts("absent") == []


def test_sc_11_a_stale_process_is_terminated_and_reaped_before_its_successor_starts(
    new_system: SystemFactory,
) -> None:
    system = new_system(scripts=lives(SILENT, then=runs())).start()
    system.run(60)
    assert system.processes.signals == [(15, W, signal.SIGTERM)]
    assert system.ends() == [15]
    assert system.starts() == [0, 16]


def test_sc_11_a_stale_process_that_takes_its_time_holds_the_restart_back(new_system: SystemFactory) -> None:
    stubborn = Behaviour(heartbeat=inf, ignores_term=True)
    system = new_system(scripts=lives(stubborn, then=runs())).start()
    system.run(60)
    assert system.ends() == [17]
    assert system.starts() == [0, 17]


def test_sc_11_the_end_of_a_stale_process_is_added_to_its_death(new_system: SystemFactory) -> None:
    system = new_system(scripts=lives(SILENT, then=runs())).start()
    system.run(60)
    death = system.memory.deaths(W)[0]
    assert (death.cause, death.signal) == (Cause.HEARTBEAT_LOST, signal.SIGTERM)


def test_sc_12_a_process_that_ignores_term_is_killed_after_2_1_and_half_a_second(
    new_system: SystemFactory,
) -> None:
    frozen = Behaviour(heartbeat=inf, ignores_term=True, ignores_kill=True)
    system = new_system(scripts=lives(frozen, then=runs())).start()
    system.run(60)
    assert [(at - 15, number) for at, _, number in system.processes.signals] == [
        (0, signal.SIGTERM),
        (2, signal.SIGKILL),
        (3, signal.SIGKILL),
    ]
    assert [at - 15 for at, _ in system.events(WorkerUnkillable)] == [3.5]
    assert system.starts() == [0]


def test_sc_12_once_an_unkillable_process_is_gone_its_successor_starts(new_system: SystemFactory) -> None:
    frozen = Behaviour(heartbeat=inf, ignores_term=True, ignores_kill=True)
    system = new_system(scripts=lives(frozen, then=runs())).start()
    system.run(60)
    system.processes.kill(W)
    system.run(0)
    assert system.starts() == [0, 60]


def test_sc_13_a_restarted_worker_keeps_its_id_and_its_place(new_system: SystemFactory) -> None:
    system = new_system(*workers(3), scripts={ids(3)[1]: uptimes(3)}).start()
    before = [each.component_id for each in system.report().workers]
    system.run(60)
    assert [each.component_id for each in system.report().workers] == before == list(ids(3))
    assert [each.generation for each in system.report().workers] == [1, 2, 1]


def test_sc_14_ids_of_every_kind_are_restarted(new_system: SystemFactory) -> None:
    names = ("worker:tag:0", "worker_1", "worker", "a_b:c.d-e", "7", "_")
    system = new_system(*(worker(name) for name in names), scripts=uptimes(3)).start()
    system.run(60)
    assert [system.starts(name) for name in names] == [[0, 4]] * len(names)


def test_sc_15_ten_workers_that_die_at_once_have_ten_timers_and_ten_counts(new_system: SystemFactory) -> None:
    system = new_system(*workers(10), scripts=uptimes(3)).start()
    system.run_to(3.5)
    assert [system.restart_timers(id_) for id_ in ids(10)] == [[4]] * 10
    system.run(60)
    assert [system.starts(id_) for id_ in ids(10)] == [[0, 4]] * 10
    assert [system.stored(id_).restart_count for id_ in ids(10)] == [1] * 10


def test_sc_15_no_more_workers_start_at_a_time_than_allowed(new_system: SystemFactory) -> None:
    slow = lives(Behaviour(healthy_after=5, dies_after=100), then=Behaviour(healthy_after=5))
    system = new_system(*workers(10), scripts=slow, max_concurrent_starts=3).start()
    system.run(99)
    first = sorted(at for at, _, _ in system.processes.starts)
    assert first == [0, 0, 0, 5, 5, 5, 10, 10, 10, 15]
    system.run(200)
    assert len(system.processes.starts) == 20
    assert all(each.status is Status.HEALTHY for each in system.report().workers)
    assert all(spread <= 3 for spread in starting_at_once(system.processes.starts, 5))


def starting_at_once(starts: list[tuple[float, str, int]], seconds: float) -> list[int]:
    """How many starts were under way at each start, if each takes this time."""
    moments = [at for at, _, _ in starts]
    return [sum(at - seconds < other <= at for other in moments) for at in moments]


def test_sc_15_a_start_that_is_stopped_gives_its_place_to_the_next(new_system: SystemFactory) -> None:
    first, second = ids(2)
    system = new_system(
        *workers(2), scripts=lives(Behaviour(healthy_after=30)), max_concurrent_starts=1
    ).start()
    system.run(1)
    system.tell(StopWorkers((first,)))
    system.run(1)
    assert (system.starts(first), system.starts(second)) == ([0], [1])


def test_sc_15_a_starting_worker_that_asks_for_time_keeps_its_place(new_system: SystemFactory) -> None:
    """Any change of its health let the next one start, also one that says that it is not ready."""
    first, second = ids(2)
    slow = {first: lives(says_recovering(20)), second: lives(Behaviour())}
    system = new_system(*workers(2), scripts=slow, max_concurrent_starts=1).start()
    system.run(60)
    assert system.starts(first) == [0]
    assert system.changes(first) == [(0, Status.RECOVERING), (20, Status.HEALTHY)]
    assert system.starts(second) == [20]


def test_sc_15_a_worker_that_is_stopped_while_its_start_waits_never_starts(new_system: SystemFactory) -> None:
    first, second = ids(2)
    system = new_system(
        *workers(2), scripts=lives(Behaviour(healthy_after=30)), max_concurrent_starts=1
    ).start()
    assert system.stop(second) != ()
    system.run(60)
    assert (system.starts(first), system.starts(second)) == ([0], [])
    assert system.status(second).shown == "stopped"


def test_sc_16_a_manual_restart_during_the_backoff_cancels_the_timer_and_starts_now(
    new_system: SystemFactory,
) -> None:
    system = new_system(scripts=uptimes(3, 3, 3, 3)).start()
    system.run_to(20)  # dead since 19, due at 27
    assert system.restart_timers() == [27]
    assert system.ask(lambda reply: RestartWorker(W, reply)) == Done()
    system.run(60)
    assert system.starts()[4:] == [20]
    assert system.status().restart_count == 0


def test_sc_16_a_manual_start_during_the_backoff_starts_now_and_keeps_the_count(
    new_system: SystemFactory,
) -> None:
    system = new_system(scripts=uptimes(3, 3, 3, 3)).start()
    system.run_to(20)
    system.start(W)
    system.run(60)
    assert system.starts()[4:] == [20]
    assert system.status().restart_count == 4


def test_a_manual_restart_of_a_running_worker_ends_the_old_process_first(new_system: SystemFactory) -> None:
    system = new_system(scripts=lives(Behaviour(stops_after=4))).start()
    system.run(10)
    system.tell(RestartWorker(W))
    system.run(60)
    assert (system.ends(), system.starts()) == ([14], [0, 14])
    assert system.deaths() == []


def test_a_worker_that_closes_its_channel_and_lives_on_is_replaced(new_system: SystemFactory) -> None:
    system = new_system(scripts=lives(runs(), runs())).start()
    system.run(5)
    system.processes.close_channel(W)
    system.run(60)
    assert system.deaths()[0].death.cause is Cause.CHANNEL_CLOSED
    assert (system.ends(), system.starts()) == ([5], [0, 6])


def test_a_worker_that_is_added_later_starts_like_the_others(new_system: SystemFactory) -> None:
    system = new_system(scripts={"late": uptimes(3)}).start()
    system.run(10)
    assert system.ask(lambda reply: AddWorker(worker("late"), reply)) == Done()
    system.run(60)
    assert system.starts("late") == [10, 14]


def test_the_id_of_a_worker_can_be_added_only_once(new_system: SystemFactory) -> None:
    system = new_system().start()
    assert isinstance(system.ask(lambda reply: AddWorker(worker(), reply)), Refused)
    assert system.starts() == [0]


def test_a_removed_worker_is_stopped_and_its_counters_stay_in_the_store(new_system: SystemFactory) -> None:
    system = new_system(scripts=uptimes(3)).start()
    system.run(10)
    stopped = system.ask(lambda reply: RemoveWorker(W, reply))
    system.run(60)
    assert stopped is None or isinstance(stopped, WorkersStopped)
    assert system.report().workers == ()
    assert system.stored().restart_count == 1
    assert W not in system.memory.health


def test_the_deaths_of_a_worker_that_was_removed_and_added_again_are_counted(
    new_system: SystemFactory,
) -> None:
    system = new_system(scripts=uptimes(3, 3, 3)).start()
    system.run(4.5)
    system.tell(RemoveWorker(W))
    system.run(1)
    system.tell(AddWorker(worker()))
    system.run(60)
    assert system.status().restart_count == system.stored().restart_count == 2
    assert len(system.memory.deaths(W)) == 2


def test_a_failed_worker_that_was_removed_and_added_again_is_failed_until_it_is_reset(
    new_system: SystemFactory,
) -> None:
    system = new_system(worker(restart={"max_lifetime": 1}), scripts=uptimes(3, 3, 3)).start()
    system.run(60)
    system.tell(RemoveWorker(W))
    system.run(1)
    system.tell(AddWorker(worker(restart={"max_lifetime": 1})))
    system.run(60)
    assert system.status().shown == "failed"
    assert len(system.memory.deaths(W)) == 2


def test_a_worker_that_is_being_removed_cannot_be_started(new_system: SystemFactory) -> None:
    system = new_system(scripts=lives(Behaviour(stops_after=5))).start()
    system.tell(RemoveWorker(W))
    assert isinstance(system.ask(lambda reply: StartWorkers((W,), reply)), Refused)
    system.start()
    system.run(60)
    assert system.report().workers == ()
    assert system.starts() == [0]


def test_a_plain_program_is_healthy_for_as_long_as_it_runs(new_system: SystemFactory) -> None:
    system = new_system(worker(run=command("sleep", "inf"))).start()
    system.run(24 * 3600)
    assert system.changes() == [(1, Status.HEALTHY)]
    assert [event.generation for _, event in system.events(WorkerStarted)] == [1]


def test_a_plain_program_that_dies_is_restarted(new_system: SystemFactory) -> None:
    script = lives(dies_after(100, signal=11), then=runs())
    system = new_system(worker(run=command("sleep", "100")), scripts=script).start()
    system.run(3600)
    assert system.starts() == [0, 101]
    assert system.deaths()[0].death.exit == Exit(signal=11) != CRASH
