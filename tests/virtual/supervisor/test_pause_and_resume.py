"""SD-10 to SD-16: pausing, resuming and resetting, in virtual time."""

from __future__ import annotations

import pytest
from tests.virtual.conftest import SystemFactory
from tests.virtual.simulated_system import W, lives, uptimes, worker, workers
from tests.virtual.supervisor.test_shutdown import A, B

from rekindle.actors.facts.health_status import Status
from rekindle.actors.facts.records import MetaSet
from rekindle.actors.messages import (
    Done,
    PauseWorkers,
    Refused,
    ResetWorker,
    RestartWorker,
    ResumeWorkers,
    StartWorkers,
    StopWorkers,
)
from rekindle.actors.ports import Control
from rekindle.actors.simulation import Behaviour, crashes_after, runs
from rekindle.actors.spec.worker_spec import PauseMode
from rekindle.actors.supervision.pauses import ENABLED
from rekindle.persistence import MemoryStore


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
