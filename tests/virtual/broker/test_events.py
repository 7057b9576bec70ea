"""What a host's own actors receive, and in which order."""

from __future__ import annotations

from math import inf

import pytest
from tests.virtual.conftest import SystemFactory
from tests.virtual.simulated_system import Listener, W, lives, uptimes, worker

from rekindle.actors.facts.health_status import Status
from rekindle.actors.messages import (
    Done,
    Event,
    PauseBegan,
    PauseEnded,
    PauseWorkers,
    Refused,
    ReportStatus,
    ResetWorker,
    ResumeWorkers,
    StartWorkers,
    StatusChanged,
    StatusReport,
    StopWorkers,
    WorkerDied,
    WorkerFailed,
    WorkerReset,
    WorkersStopped,
    WorkerStarted,
    WorkerStopped,
)
from rekindle.actors.messages.internal.to_broker import Subscribe, Unsubscribe
from rekindle.actors.simulation import Behaviour, crashes_after, runs
from rekindle.actors.spec.program import Command, PythonCall, command

SEEDS = pytest.mark.parametrize("seed", range(20))
PROGRAMS = pytest.mark.parametrize("run", [PythonCall("app:run"), command("app")], ids=["python", "plain"])


def word(event: Event) -> str:
    """An event in one word."""
    return f"→{event.new}" if isinstance(event, StatusChanged) else type(event).__name__


@SEEDS
@PROGRAMS
def test_ev_18_a_worker_that_is_given_up_is_reported_in_this_order(
    new_system: SystemFactory, seed: int, run: Command | PythonCall
) -> None:
    spec = worker(run=run, restart={"max_lifetime": 1})
    system = new_system(spec, scripts=crashes_after(3), seed=seed).start()
    system.run(60)
    incarnation = ["WorkerStarted", "→healthy", "→dead", "WorkerDied"]
    assert [word(event) for event in system.listener.messages] == [
        *incarnation,
        *incarnation,
        "WorkerFailed",
        "→failed",
    ]


@SEEDS
@PROGRAMS
def test_a_worker_that_dies_at_once_is_reported_as_started_before_it_died(
    new_system: SystemFactory, seed: int, run: Command | PythonCall
) -> None:
    script = lives(Behaviour(dies_after=0, healthy_after=None), then=runs())
    system = new_system(worker(run=run), scripts=script, seed=seed).start()
    system.run(0.5)
    words = [word(event) for event in system.listener.messages]
    assert [each for each in words if each != "→healthy"] == ["WorkerStarted", "→dead", "WorkerDied"]


@SEEDS
def test_ev_18_never_is_a_worker_dead_after_it_failed(new_system: SystemFactory, seed: int) -> None:
    # Taken for dead while it runs on: its real end comes after it was given up.
    spec = worker(restart={"give_up_exit_codes": (), "max_lifetime": 1})
    script = lives(Behaviour(heartbeat=inf, ignores_term=True))
    system = new_system(spec, scripts=script, seed=seed).start()
    system.run(300)
    changes = [new for _, new in system.changes()]
    assert changes[-2:] == [Status.DEAD, Status.FAILED]
    assert changes.count(Status.FAILED) == 1
    assert not system.processes.alive(W)


def test_the_generations_of_events_tell_the_incarnations_apart(new_system: SystemFactory) -> None:
    system = new_system(scripts=uptimes(3, 3)).start()
    system.run(60)
    assert [event.generation for _, event in system.events(WorkerStarted)] == [1, 2, 3]
    assert [event.death.generation for _, event in system.events(WorkerDied)] == [1, 2]


def test_a_death_is_published_with_the_decision(new_system: SystemFactory) -> None:
    system = new_system(scripts=uptimes(3)).start()
    system.run(60)
    (told,) = system.deaths()
    assert (told.action, told.delay_s, told.restart_count) == ("restart", 1.0, 1)
    assert told.reason == "Restart #1 with 1s backoff"
    assert (told.death.uptime_ms, told.death.healthy_for_ms) == (3000, 3000)


def test_a_death_is_published_with_the_job_that_the_worker_held(new_system: SystemFactory) -> None:
    system = new_system(scripts=lives(Behaviour(dies_after=3, job="order-7"), then=runs())).start()
    system.run(60)
    assert system.deaths()[0].death.job == "order-7"
    assert system.memory.deaths(W)[0].job == "order-7"


def test_a_stop_is_published_as_a_stop(new_system: SystemFactory) -> None:
    system = new_system().start()
    system.run(10)
    system.stop()
    system.run(60)
    assert [word(event) for event in system.listener.messages] == [
        "WorkerStarted",
        "→healthy",
        "WorkerStopping",
        "WorkerStopped",
    ]
    assert system.events(WorkerStopped)[0][0] == 10


def test_a_late_subscriber_receives_later_events_and_one_that_leaves_receives_nothing_more(
    new_system: SystemFactory,
) -> None:
    system = new_system(scripts=uptimes(3)).start()
    late = Listener(system.runtime.clock.monotonic)
    system.actors.broker.tell(Subscribe(late))
    system.run_to(3.5)
    system.actors.broker.tell(Unsubscribe(late))
    system.run(60)
    assert [word(event) for event in late.messages] == ["→healthy", "→dead", "WorkerDied"]


def test_a_listener_that_subscribes_twice_receives_everything_once(new_system: SystemFactory) -> None:
    system = new_system(scripts=uptimes(3))
    system.actors.broker.tell(Subscribe(system.listener))
    system.start().run(60)
    assert len(system.events(WorkerDied)) == 1


def test_a_host_of_actors_is_answered_by_messages(new_system: SystemFactory) -> None:
    system = new_system()
    host = Listener(system.runtime.clock.monotonic)
    for request in (
        StartWorkers(None, host),
        StartWorkers(("absent",), host),
        ReportStatus(host),
        StopWorkers(None, host),
    ):
        system.tell(request)
    system.run(1)
    assert [type(answer) for answer in host.messages] == [Done, Refused, StatusReport, WorkersStopped]


def test_a_failure_is_published_with_its_reason(new_system: SystemFactory) -> None:
    system = new_system(worker(restart={"give_up_exit_codes": (1,)}), scripts=crashes_after(3)).start()
    system.run(60)
    ((at, failed),) = system.events(WorkerFailed)
    assert (at, failed.generation) == (3, 1)
    assert "exit code 1" in failed.reason


def test_a_pause_is_published_when_it_begins_and_when_it_ends_by_itself(new_system: SystemFactory) -> None:
    system = new_system(worker(), scripts=lives(runs())).start()
    system.run(10)
    system.tell(PauseWorkers((W,), reason="repairs", for_s=60))
    system.tell(PauseWorkers(reason="all of it"))
    system.run(70)
    system.tell(ResumeWorkers())
    system.tell(ResumeWorkers())
    system.run(1)
    pauses = [each for each in system.listener.messages if isinstance(each, PauseBegan | PauseEnded)]
    assert pauses == [
        PauseBegan(W, "repairs", 60),
        PauseBegan(None, "all of it", None),
        PauseEnded(W),
        PauseEnded(None),
    ]


def test_a_reset_is_published(new_system: SystemFactory) -> None:
    system = new_system(worker(), scripts=lives(runs())).start()
    system.run(10)
    system.tell(ResetWorker(W))
    system.run(1)
    assert system.listener.messages[-1] == WorkerReset(W)
