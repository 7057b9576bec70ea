"""The Supervisor raises in the middle of things: it is replaced in place, and no worker is affected."""

from __future__ import annotations

from math import inf
from signal import SIGTERM

import pytest
from tests.virtual.conftest import SystemFactory
from tests.virtual.faults import Mistake, at
from tests.virtual.simulated_system import W, ids, lives, uptimes, worker, workers

from rekindle.actors.deaths.death import Cause, Exit
from rekindle.actors.messages import (
    Done,
    ReportStatus,
    StartWorkers,
    StatusChanged,
    StopResult,
    StopWorkers,
)
from rekindle.actors.messages.internal.to_proxy import (
    ProcessStarted,
)
from rekindle.actors.messages.internal.to_supervisor import (
    HealthSustained,
    ProcessGone,
    ProcessReported,
)
from rekindle.actors.simulation import Behaviour, crashes_after, runs
from rekindle.actors.supervision.worker import (
    Announce,
    CancelTimers,
    Effect,
    KeepRecord,
    Schedule,
    SupervisedWorker,
)
from rekindle.actors.supervisor.actor import Supervisor
from rekindle.actors.supervisor.workers import Workers

death = at(StatusChanged, where=lambda message: message.death is not None)


def test_a_supervisor_that_raises_while_all_are_healthy_leaves_them_alone(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(Supervisor, at(ReportStatus)).put_in(monkeypatch)
    system = new_system(*workers(5)).start()
    system.run(100)
    assert len(system.report().workers) == 5
    system.run(100)
    assert len(system.processes.starts) == 5
    assert system.deaths() == []


def test_a_supervisor_that_raises_in_the_backoff_keeps_the_moment_of_the_restart(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(Supervisor, at(ReportStatus)).put_in(monkeypatch)
    system = new_system(worker(restart={"initial_delay_s": 16.0}), scripts=uptimes(3)).start()
    system.run_to(10)
    system.report()
    assert system.restart_timers() == [19]
    system.run(60)
    assert system.starts() == [0, 19]
    assert system.stored().restart_count == 1


def test_a_supervisor_that_raises_at_the_death_of_a_process_that_still_runs_ends_it(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It forgot the worker once: it was dead for the monitor and alive for the process table.
    Mistake(Supervisor, death, times=2).put_in(monkeypatch)
    system = new_system(scripts=lives(Behaviour(heartbeat=inf), then=runs())).start()
    system.run(60)
    assert (system.ends(), system.starts()) == ([15], [0, 16])
    assert system.memory.deaths(W)[0].cause is Cause.HEARTBEAT_LOST


def test_a_supervisor_that_raises_keeps_sustained_health_on_its_way(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(Supervisor, at(ReportStatus)).put_in(monkeypatch)
    system = new_system(worker(preset="plugin"), scripts=uptimes(3)).start()
    system.run_to(40)
    system.report()
    system.run_to(62.9)
    assert system.status().streak_count == 1
    system.run_to(63)
    assert system.status().streak_count == 0


def test_sustained_health_is_noted_although_the_supervisor_raises_at_it(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(Supervisor, at(HealthSustained)).put_in(monkeypatch)
    system = new_system(worker(preset="plugin"), scripts=uptimes(3)).start()
    system.run(100)
    assert system.stored().streak_count == 0


@pytest.mark.parametrize("seed", range(20))
def test_starts_on_their_way_are_not_taken_for_deaths(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    Mistake(Supervisor, at(ProcessStarted)).put_in(monkeypatch)
    system = new_system(*workers(5), seed=seed).start()
    system.run(60)
    assert system.deaths() == []
    assert len(system.processes.starts) == 5


def test_starts_that_wait_for_others_are_not_taken_for_deaths(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(Supervisor, at(ProcessStarted)).put_in(monkeypatch)
    slow = lives(Behaviour(healthy_after=5))
    system = new_system(*workers(3), scripts=slow, max_concurrent_starts=1).start()
    system.run(60)
    assert system.deaths() == []
    assert [system.starts(id_) for id_ in ids(3)] == [[0], [5], [10]]


def test_a_supervisor_that_raises_in_the_middle_of_a_stop_does_not_prolong_it(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(Supervisor, at(ReportStatus)).put_in(monkeypatch)
    system = new_system(scripts=lives(Behaviour(stops_after=30))).start()
    system.tell(StopWorkers())
    system.run(5)
    system.report()
    assert system.stop() == (StopResult(W, Exit(signal=SIGTERM), SIGTERM),)
    assert system.now == 10


@pytest.mark.parametrize(
    "kind", [CancelTimers, KeepRecord, Announce, Schedule], ids=lambda kind: kind.__name__
)
def test_an_effect_that_raises_does_not_keep_the_others_from_happening(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch, kind: type[Effect]
) -> None:
    perform, armed = Workers._perform, [True]

    def perform_badly(self: Workers, worker: SupervisedWorker, effect: Effect) -> None:
        if armed and isinstance(effect, kind) and self._runtime.clock.monotonic() > 0:
            armed.clear()
            raise RuntimeError("a mistake")
        perform(self, worker, effect)

    monkeypatch.setattr(Workers, "_perform", perform_badly)
    system = new_system(scripts=uptimes(3)).start()
    system.run(60)
    assert system.starts() == [0, 4]
    assert system.stored().restart_count == system.status().restart_count == 1


def test_a_command_is_answered_although_the_supervisor_raised_at_it(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(Supervisor, at(StartWorkers)).put_in(monkeypatch)
    system = new_system()
    assert system.ask(lambda reply: StartWorkers(None, reply)) == Done()
    assert system.starts() == [0]


def test_a_report_from_before_a_start_says_nothing_about_it(new_system: SystemFactory) -> None:
    system = new_system(scripts=uptimes(3)).start()
    system.run(10)
    system.tell(ProcessReported(W, None, ordered=1))
    system.run(60)
    assert len(system.deaths()) == 1
    assert system.starts() == [0, 4]


def test_a_failure_is_persisted_although_an_effect_before_it_raised(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    perform, armed = Workers._perform, [True]

    def perform_badly(self: Workers, worker: SupervisedWorker, effect: Effect) -> None:
        if armed and isinstance(effect, CancelTimers) and self._runtime.clock.monotonic() > 0:
            armed.clear()
            raise RuntimeError("a mistake")
        perform(self, worker, effect)

    monkeypatch.setattr(Workers, "_perform", perform_badly)
    system = new_system(worker(restart={"give_up_exit_codes": (1,)}), scripts=crashes_after(3)).start()
    system.run(60)
    assert system.status().shown == "failed"
    assert system.stored().failed_at_wall_ms is not None


def test_the_place_of_a_stopped_start_is_free_although_the_supervisor_missed_its_end(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(Supervisor, at(ProcessGone), times=2).put_in(monkeypatch)
    slow = lives(Behaviour(healthy_after=30))
    system = new_system(*workers(2), scripts=slow, max_concurrent_starts=1).start()
    system.stop(ids(2)[0])
    system.run(1)
    assert system.starts(ids(2)[1]) == [0]
