"""SD: stopping, pausing and resuming, in virtual time."""

from __future__ import annotations

import signal
from math import inf

import pytest
from tests.virtual.conftest import SystemFactory
from tests.virtual.simulated_system import Listener, W, ids, lives, uptimes, worker, workers

from rekindle.actors.deaths.death import Exit
from rekindle.actors.facts.health_status import Status
from rekindle.actors.facts.records import MetaSet
from rekindle.actors.messages import (
    Refused,
    ResumeWorkers,
    Shutdown,
    StartWorkers,
    StopResult,
    StopWorkers,
    WorkersStopped,
    WorkerStopped,
)
from rekindle.actors.ports import Control
from rekindle.actors.simulation import Behaviour, crashes_after
from rekindle.actors.spec.policies.stop_policy import Urgency
from rekindle.actors.supervision.pauses import ENABLED
from rekindle.persistence import MemoryStore

A, B = ids(2)
DEAF = Behaviour(ignores_request=True, ignores_term=True)
"""Ends by nothing but SIGKILL."""


def test_sd_01_a_shutdown_cancels_every_pending_restart(new_system: SystemFactory) -> None:
    system = new_system(*workers(2), scripts=uptimes(3)).start()
    system.run_to(3.5)
    assert system.restart_timers(A) == system.restart_timers(B) == [4]
    system.shut_down()
    assert system.restart_timers(A) == system.restart_timers(B) == []
    system.run(60)
    assert (system.starts(A), system.starts(B)) == ([0], [0])


def test_sd_02_a_stop_without_a_living_worker_cancels_the_timers_all_the_same(
    new_system: SystemFactory,
) -> None:
    system = new_system(scripts=uptimes(3)).start()
    system.run_to(3.5)
    assert system.stop() == (StopResult(W, None, None),)
    assert system.restart_timers() == []


def test_sd_03_a_death_in_the_middle_of_a_stop_is_not_a_death(new_system: SystemFactory) -> None:
    system = new_system(scripts=lives(Behaviour(dies_after=5, ignores_request=True))).start()
    system.run(3)
    assert system.stop() == (StopResult(W, Exit(code=1), None),)
    assert system.now == 5
    assert system.deaths() == []
    assert (system.memory.deaths(), system.stored().restart_count) == ((), 0)


def test_sd_04_a_worker_that_is_stopped_during_its_backoff_stays_stopped(new_system: SystemFactory) -> None:
    system = new_system(scripts=uptimes(3)).start()
    system.run_to(3.5)
    system.stop()
    system.run(3)
    assert system.status().shown == "stopped"
    assert system.starts() == [0]


def test_sd_05_a_worker_that_ignores_everything_is_killed_after_12_seconds(new_system: SystemFactory) -> None:
    system = new_system(scripts=lives(DEAF)).start()
    system.run(5)
    (result,) = system.stop()
    assert system.now - 5 == 12
    assert result.killed
    assert [(at - 5, what) for at, _, what in system.processes.controls] == [(0, Control.STOP)]
    assert [(at - 5, number) for at, _, number in system.processes.signals] == [
        (10, signal.SIGTERM),
        (12, signal.SIGKILL),
    ]


def test_sd_05_a_stop_of_an_unkillable_worker_is_answered_after_13_and_a_half_seconds(
    new_system: SystemFactory,
) -> None:
    immortal = Behaviour(ignores_request=True, ignores_term=True, ignores_kill=True)
    system = new_system(scripts=lives(immortal)).start()
    (result,) = system.stop()
    assert system.now == 13.5
    assert not result.gone


def test_sd_06_a_graceful_worker_is_stopping_then_stopped_without_a_death(new_system: SystemFactory) -> None:
    system = new_system(scripts=lives(Behaviour(stops_after=4))).start()
    system.run(5)
    system.tell(StopWorkers())
    assert system.status().shown == "stopping"
    system.run(4)
    assert system.status().shown == "stopped"
    assert [(at, event.exit) for at, event in system.events(WorkerStopped)] == [(9, Exit(code=0))]
    assert [new for _, new in system.changes()] == [Status.HEALTHY]


def test_sd_07_a_second_stop_changes_nothing_and_is_answered(new_system: SystemFactory) -> None:
    system = new_system().start()
    assert system.stop() == (StopResult(W, Exit(code=0), None),)
    before = list(system.listener.received)
    assert system.stop() == (StopResult(W, None, None),)
    assert system.listener.received == before


def test_sd_07_a_stop_in_the_middle_of_a_stop_asks_only_once(new_system: SystemFactory) -> None:
    system = new_system(scripts=lives(Behaviour(stops_after=4))).start()
    system.tell(StopWorkers())
    system.run(1)
    assert system.stop() == (StopResult(W, Exit(code=0), None),)
    assert system.now == 4
    assert [what for _, _, what in system.processes.controls] == [Control.STOP]


def test_a_caller_that_waits_for_a_stop_is_answered_although_another_starts_the_worker_meanwhile(
    new_system: SystemFactory,
) -> None:
    system = new_system(scripts=lives(Behaviour(stops_after=4))).start()
    inbox = Listener(lambda: system.now)
    system.tell(StopWorkers((W,), inbox))
    system.run(1)
    system.tell(StartWorkers((W,)))
    system.run(30)
    assert inbox.received == [(4, WorkersStopped((StopResult(W, Exit(code=0), None, relaunched=True),)))]
    assert system.starts() == [0, 4]


def test_sd_08_a_second_start_starts_only_what_is_missing(new_system: SystemFactory) -> None:
    system = new_system(*workers(2)).start()
    system.run(5)
    system.stop(B)
    system.start()
    assert (system.starts(A), system.starts(B)) == ([0], [0, 5])
    assert len(system.report().workers) == 2


def test_sd_09_a_disabled_system_starts_nothing(new_system: SystemFactory) -> None:
    store = MemoryStore()
    store.commit([MetaSet(ENABLED, "false")])
    system = new_system(store=store).start()
    system.run(60)
    assert system.starts() == []
    assert system.report().paused
    system.tell(ResumeWorkers())
    assert system.starts() == [60]


def test_sd_17_ten_workers_that_ignore_everything_are_stopped_together(new_system: SystemFactory) -> None:
    system = new_system(*workers(10), scripts=lives(DEAF)).start()
    results = system.shut_down()
    assert system.now == 12
    assert [result.killed for result in results] == [True] * 10


def test_sd_19_a_start_in_the_middle_of_a_stop_waits_for_its_end(new_system: SystemFactory) -> None:
    system = new_system(scripts=lives(Behaviour(stops_after=4))).start()
    system.tell(StopWorkers())
    system.run(1)
    system.start()
    system.run(60)
    assert (system.ends(), system.starts()) == ([4], [0, 4])


@pytest.mark.parametrize("command", [StartWorkers, ResumeWorkers], ids=["start", "resume"])
def test_sd_19_a_start_in_the_middle_of_a_shutdown_is_refused(
    new_system: SystemFactory, command: type[StartWorkers | ResumeWorkers]
) -> None:
    system = new_system(scripts=lives(Behaviour(stops_after=4))).start()
    system.tell(Shutdown())
    system.run(1)
    refused = system.ask(lambda reply: command(None, reply))
    assert isinstance(refused, Refused)
    assert "stopping" in refused.reason
    system.run(60)
    assert system.starts() == [0]


def test_f17_workers_that_crash_and_start_during_a_shutdown_stay_down(new_system: SystemFactory) -> None:
    system = new_system(*workers(10), scripts=crashes_after(0.5)).start()
    system.run(3.25)
    results = system.shut_down()
    assert sorted(result.component_id for result in results) == list(ids(10))
    stopped_at, starts = system.now, len(system.processes.starts)
    system.run(600)
    assert len(system.processes.starts) == starts
    assert stopped_at <= 13.25
    assert not any(system.processes.alive(id_) for id_ in ids(10))


def test_sd_05_a_kill_reaches_one_that_was_taken_for_dead_and_still_ends(new_system: SystemFactory) -> None:
    hung = Behaviour(heartbeat=inf, ignores_term=True, ignores_request=True)
    system = new_system(worker("x", stop={"term_s": 60.0}), scripts={"x": lives(hung)}).start()
    system.run_to(16)
    assert system.status("x").shown == "crashed"
    answer = Listener(system.runtime.clock.monotonic)
    system.actors.supervisor.tell(Shutdown(answer, Urgency.KILL))
    system.run(1)
    assert [signum for _, _, signum in system.processes.signals] == [signal.SIGTERM, signal.SIGKILL]
    assert len(answer.messages) == 1


def test_sd_05_stopping_an_unkillable_worker_again_reports_it_again(new_system: SystemFactory) -> None:
    unkillable = Behaviour(ignores_request=True, ignores_term=True, ignores_kill=True)
    system = new_system(worker("x"), worker("y"), scripts={"x": lives(unkillable)}).start()
    system.run_to(1)
    assert [result.gone for result in system.stop("x", within=30)] == [False]
    assert [result.gone for result in system.shut_down()] == [False, True]
