"""The probe of a worker's liveness, in virtual time: failures in a row end the worker."""

from __future__ import annotations

from typing import Any

from tests.virtual.conftest import SystemFactory
from tests.virtual.simulated_system import SimulatedSystem, W, worker

from rekindle.actors.deaths.death import Cause
from rekindle.actors.facts.health_status import Status
from rekindle.actors.messages import PauseWorkers, ResumeWorkers
from rekindle.actors.messages.internal.to_monitor import BreakerTurned, LifeProbed
from rekindle.actors.spec.policies.alive_policy import AlivePolicy
from rekindle.actors.spec.policies.breaker_policy import BreakerPolicy
from rekindle.actors.spec.policies.ready_policy import ReadyPolicy
from rekindle.actors.spec.probe import TcpProbe
from rekindle.actors.spec.program import Command, command

PENDING, HEALTHY, UNHEALTHY, RECOVERING, DEAD, FAILED = Status
PLAIN = command("./app")
ALIVE = AlivePolicy(tcp=TcpProbe("localhost:80"), every_s=1000, failures=3)
"""Asked so rarely that only the answers of the test count."""


def started(new_system: SystemFactory, *, run: Command | None = PLAIN, **changes: Any) -> SimulatedSystem:
    """A system with one probed worker that runs forever and is ready."""
    system = new_system(worker(run=run, alive=ALIVE, **changes)).start()
    system.run_to(2)
    return system


def answers(system: SimulatedSystem, *good: bool, generation: int = 1) -> None:
    """The probe answers, once in a second."""
    for is_good in good:
        words = "connected" if is_good else "connection refused"
        system.actors.monitor.tell(LifeProbed(W, generation, is_good, words))
        system.run(1)


def test_three_failures_in_a_row_end_it_and_the_answers_stay_with_the_death(
    new_system: SystemFactory,
) -> None:
    system = started(new_system)
    answers(system, True, False, False, False)
    (death,) = [event.death for event in system.deaths()]
    assert death.cause is Cause.PROBE_FAILED
    question = "connection to localhost:80"
    assert death.detail == f"3 probes failed in a row: {question}: connection refused"
    assert death.probes[0] == f"{question} failed 0 s ago: connection refused"
    assert death.probes[-1] == f"{question} passed 3 s ago: connected"
    assert system.changes()[:3] == [(1, HEALTHY), (3, UNHEALTHY), (5, DEAD)]


def test_one_success_begins_the_count_anew(new_system: SystemFactory) -> None:
    system = started(new_system)
    answers(system, *(False, False, True) * 5)
    assert system.deaths() == []
    assert system.status().status is HEALTHY


def test_failures_before_it_is_ready_do_not_count(new_system: SystemFactory) -> None:
    system = started(new_system, ready=ReadyPolicy(after_s=20))
    answers(system, *[False] * 6)
    assert system.status().status is PENDING
    system.run_to(21)
    answers(system, False, False)
    assert system.deaths() == []


def test_failures_of_a_paused_worker_do_not_count(new_system: SystemFactory) -> None:
    system = started(new_system, pause_mode="idle")
    system.ask(lambda reply: PauseWorkers((W,), reply))
    answers(system, *[False] * 6)
    system.ask(lambda reply: ResumeWorkers((W,), reply))
    answers(system, False, False)
    assert system.deaths() == []
    answers(system, False)
    assert len(system.deaths()) == 1


def test_an_open_breaker_spares_it_and_the_count_begins_when_it_closes(new_system: SystemFactory) -> None:
    system = started(new_system, breaker=BreakerPolicy(name="db"))
    answers(system, False)
    system.actors.monitor.tell(BreakerTurned("db", is_open=True))
    answers(system, *[False] * 9)
    assert (system.deaths(), system.status().status) == ([], UNHEALTHY)
    system.actors.monitor.tell(BreakerTurned("db", is_open=False))
    answers(system, False, False)
    assert system.deaths() == []
    answers(system, False)
    assert len(system.deaths()) == 1


def test_workers_that_die_of_the_same_outage_open_their_breaker_which_spares_the_rest(
    new_system: SystemFactory,
) -> None:
    away = BreakerPolicy(name="db", deaths=2, window_s=30)
    ids = ("a", "b", "c")
    system = new_system(*(worker(id_, run=PLAIN, alive=ALIVE, breaker=away) for id_ in ids)).start()
    system.run_to(2)
    for _ in range(3):
        for id_ in ids:
            system.actors.monitor.tell(LifeProbed(id_, 1, False, "no database"))
            system.run(0.1)
    assert [len(system.deaths(id_)) for id_ in ids] == [1, 1, 0]


def test_a_healthy_frame_does_not_hide_a_failing_probe(new_system: SystemFactory) -> None:
    system = started(new_system, run=None)
    answers(system, False)
    system.run(12)
    assert system.status().status is UNHEALTHY
    answers(system, True)
    assert system.status().status is HEALTHY


def test_an_answer_of_an_earlier_process_is_ignored(new_system: SystemFactory) -> None:
    system = started(new_system)
    answers(system, False, False, False, generation=0)
    assert system.status().status is HEALTHY
    assert system.status().probes == ()
