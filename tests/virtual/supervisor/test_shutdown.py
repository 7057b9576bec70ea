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
    Done,
    PauseWorkers,
    Refused,
    ResetWorker,
    RestartWorker,
    ResumeWorkers,
    Shutdown,
    StartWorkers,
    StopResult,
    StopWorkers,
    WorkersStopped,
    WorkerStopped,
)
from rekindle.actors.ports import Control
from rekindle.actors.simulation import Behaviour, crashes_after, runs
from rekindle.actors.spec.policies.stop_policy import Urgency
from rekindle.actors.spec.worker_spec import PauseMode
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


@pytest.mark.parametrize(
    ("kept", "starts"), [(None, [0.0]), ("true", [0.0]), ("TRUE", [0.0]), ("false", []), ("False ", [])]
)
def test_sd_10_the_enabled_flag_is_on_unless_it_says_false(
    new_system: SystemFactory, kept: str | None, starts: list[float]
) -> None:
    store = MemoryStore()
    store.commit([MetaSet(ENABLED, kept)])
    assert new_system(store=store).start().starts() == starts


def test_sd_10_a_pause_survives_a_restart_of_the_application(new_system: SystemFactory) -> None:
    system = new_system(*workers(2)).start()
    system.tell(PauseWorkers((A,)))
    system.run(5)
    system.restart_application()
    system.start()
    assert (system.starts(A), system.starts(B)) == ([], [0])
    assert system.status(A).paused
    system.tell(ResumeWorkers((A,)))
    assert system.starts(A) == [0]


def test_sd_11_a_pause_lets_the_job_finish_and_the_worker_go(new_system: SystemFactory) -> None:
    system = new_system(scripts=lives(Behaviour(stops_after=9, job=42))).start()
    system.run(5)
    assert system.ask(lambda reply: PauseWorkers(None, reply)) == Done()
    assert system.memory.load().meta[ENABLED] == "false"
    system.run(8.9)
    assert system.processes.alive(W)
    system.run(0.1)
    assert not system.processes.alive(W)
    assert system.processes.signals == []
    assert (system.status().shown, system.status().paused) == ("stopped", True)


def test_sd_12_an_idle_pause_keeps_the_process_healthy_without_a_job(new_system: SystemFactory) -> None:
    system = new_system(worker(pause_mode=PauseMode.IDLE), scripts=lives(Behaviour(job=42))).start()
    system.run(5)
    assert system.status().current_job == 42
    system.tell(PauseWorkers())
    system.run(10)
    assert system.processes.alive(W)
    assert (system.status().status, system.status().current_job) == (Status.HEALTHY, None)
    system.tell(ResumeWorkers())
    system.run(2)
    assert system.status().current_job == 42
    assert system.processes.controls == [(5, W, Control.PAUSE), (15, W, Control.RESUME)]
    assert system.starts() == [0]


def test_sd_12_a_worker_that_is_paused_while_its_start_waits_idles_once_it_is_there(
    new_system: SystemFactory,
) -> None:
    slow = lives(Behaviour(healthy_after=5))
    specs = (worker(A), worker(B, pause_mode=PauseMode.IDLE))
    system = new_system(*specs, scripts=slow, max_concurrent_starts=1).start()
    system.tell(PauseWorkers((B,)))
    system.run(10)
    assert system.processes.controls == [(5, B, Control.PAUSE)]


def test_sd_13_pausing_and_resuming_leaves_the_count_as_it_was(new_system: SystemFactory) -> None:
    system = new_system(scripts=uptimes(3, 3, 3)).start()
    system.run(30)
    for _ in range(3):
        system.tell(PauseWorkers())
        system.run(5)
        system.tell(ResumeWorkers())
        system.run(5)
    assert system.status().restart_count == system.stored().restart_count == 3
    assert len(system.starts()) == 7


def test_sd_14_a_resume_starts_the_others_and_leaves_the_failed_one_failed(new_system: SystemFactory) -> None:
    specs = (worker(A, restart={"max_lifetime": 1}), worker(B))
    system = new_system(*specs, scripts={A: crashes_after(3)}).start()
    system.run(20)
    system.tell(PauseWorkers())
    system.run(5)
    system.tell(ResumeWorkers())
    system.run(5)
    assert system.status(A).shown == "failed"
    assert (len(system.starts(A)), len(system.starts(B))) == (2, 2)


@pytest.mark.parametrize("command", [ResumeWorkers(), StartWorkers((W,))], ids=["resume", "start"])
def test_sd_15_a_failed_worker_that_is_reset_starts_only_on_command(
    new_system: SystemFactory, command: ResumeWorkers | StartWorkers
) -> None:
    system = new_system(worker(restart={"max_lifetime": 1}), scripts=uptimes(3, 3)).start()
    system.run(20)
    assert system.ask(lambda reply: ResetWorker(W, reply)) == Done()
    system.run(20)
    assert len(system.starts()) == 2
    assert system.status().shown == "stopped"
    system.tell(command)
    assert system.starts()[2:] == [40]
    assert system.status().restart_count == system.stored().restart_count == 0
    assert system.stored().failed_at_wall_ms is None


def test_a_start_of_a_failed_worker_is_refused_with_its_reason(new_system: SystemFactory) -> None:
    system = new_system(worker(restart={"max_lifetime": 1}), scripts=crashes_after(3)).start()
    system.run(20)
    refused = system.ask(lambda reply: StartWorkers((W,), reply))
    assert isinstance(refused, Refused)
    assert "lifetime" in refused.reason


def test_a_restart_of_a_failed_worker_resets_and_starts_it(new_system: SystemFactory) -> None:
    system = new_system(worker(restart={"max_lifetime": 1}), scripts=uptimes(3, 3)).start()
    system.run(20)
    system.tell(RestartWorker(W))
    system.run(20)
    assert system.status().status is Status.HEALTHY
    assert system.starts()[2:] == [20]


def test_sd_16_a_pause_during_the_backoff_cancels_the_timer_and_a_resume_starts_at_once(
    new_system: SystemFactory,
) -> None:
    system = new_system(scripts=uptimes(3, 3)).start()
    system.run_to(7.5)
    system.tell(PauseWorkers())
    assert system.restart_timers() == []
    system.run_to(30)
    system.tell(ResumeWorkers())
    assert system.starts() == [0, 4, 30]
    assert system.status().restart_count == 2


def test_sd_16_a_worker_that_an_operator_stopped_is_not_started_by_a_resume(
    new_system: SystemFactory,
) -> None:
    system = new_system(scripts=lives(Behaviour(stops_after=4))).start()
    system.tell(StopWorkers())
    system.run(1)
    system.tell(PauseWorkers())
    system.run(10)
    system.tell(ResumeWorkers())
    system.run(10)
    assert system.starts() == [0]


@pytest.mark.parametrize("whose", [(W,), None], ids=["its own", "everything"])
def test_a_start_and_a_restart_under_a_pause_are_refused_and_change_nothing(
    new_system: SystemFactory, whose: tuple[str, ...] | None
) -> None:
    system = new_system(scripts=uptimes(3)).start()
    system.run(10)
    system.tell(PauseWorkers(whose, reason="new disk"))
    system.run(10)
    for order in (lambda reply: StartWorkers((W,), reply), lambda reply: RestartWorker(W, reply)):
        refused = system.ask(order)
        assert isinstance(refused, Refused)
        assert "(new disk); resume" in refused.reason
        assert refused.paused == ("" if whose is None else W)
    assert system.status().restart_count == 1
    assert len(system.starts()) == 2


def test_a_stopped_worker_under_a_pause_is_reported_to_need_a_resume_and_then_a_start(
    new_system: SystemFactory,
) -> None:
    system = new_system().start()
    system.stop(W)
    system.tell(PauseWorkers())
    refused = system.ask(lambda reply: StartWorkers((W,), reply))
    assert refused == Refused(
        f"{W} is paused with everything; resume everything first, then start it", paused=""
    )


def test_starting_a_running_worker_or_resuming_an_unpaused_one_reports_that_nothing_changed(
    new_system: SystemFactory,
) -> None:
    system = new_system().start()
    system.run(5)
    assert system.ask(lambda reply: StartWorkers((W,), reply)) == Done(already=True)
    assert system.ask(lambda reply: ResumeWorkers((W,), reply)) == Done(already=True)
    assert system.ask(lambda reply: ResumeWorkers(None, reply)) == Done(already=True)
    system.stop(W)
    system.tell(ResetWorker(W))
    assert system.ask(lambda reply: StartWorkers((W,), reply)) == Done()


def test_a_resume_that_starts_a_worker_that_was_reset_is_not_called_needless(
    new_system: SystemFactory,
) -> None:
    system = new_system(worker(restart={"max_lifetime": 1}), scripts=uptimes(3, 3)).start()
    system.run(20)
    system.tell(ResetWorker(W))
    assert system.ask(lambda reply: ResumeWorkers(None, reply)) == Done()


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


def test_a_paused_idle_worker_that_dies_is_started_by_the_resume(new_system: SystemFactory) -> None:
    system = new_system(worker(pause_mode=PauseMode.IDLE)).start()
    system.run(5)
    system.tell(PauseWorkers())
    system.processes.kill(W)
    system.run(60)
    assert system.starts() == [0]
    system.tell(ResumeWorkers())
    system.run(5)
    assert system.starts() == [0, 65]
    assert system.status().restart_count == 0


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


def test_a_pause_excuses_no_start_that_others_wait_for(new_system: SystemFactory) -> None:
    system = new_system(
        worker("slow", pause_mode=PauseMode.IDLE),
        worker("other"),
        max_concurrent_starts=1,
        scripts={"slow": lives(runs(), Behaviour(healthy_after=None)), "other": lives(runs(), runs())},
    ).start()
    system.run_to(5)
    system.processes.kill("slow")
    system.run_to(6.5)
    system.tell(PauseWorkers(("slow",)))
    system.processes.kill("other")
    system.run(600)
    assert system.status("other").status is Status.HEALTHY
