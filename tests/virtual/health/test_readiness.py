"""Readiness in virtual time: a worker is starting until every condition of its spec is met."""

from __future__ import annotations

from typing import Any

import pytest
from tests.virtual.conftest import SystemFactory
from tests.virtual.simulated_system import SimulatedSystem, W, lives, worker

from rekindle.actors.deaths.death import Cause
from rekindle.actors.facts.frames import Frame
from rekindle.actors.facts.health_status import ShownStatus, Status
from rekindle.actors.messages import StatusChanged
from rekindle.actors.messages.internal.to_monitor import ConditionChecked
from rekindle.actors.simulation import Behaviour, Script, dies_after
from rekindle.actors.spec.policies.alive_policy import AlivePolicy
from rekindle.actors.spec.policies.breaker_policy import BreakerPolicy
from rekindle.actors.spec.policies.ready_policy import Condition, ReadyPolicy
from rekindle.actors.spec.policies.resource_limits import RecyclePolicy
from rekindle.actors.spec.probe import TcpProbe
from rekindle.actors.spec.program import command
from rekindle.actors.spec.worker_spec import WorkerSpec

PENDING, HEALTHY, UNHEALTHY, RECOVERING, DEAD, FAILED = Status
PLAIN = command("./app")
LISTENS = ReadyPolicy(output="listening")


def test_a_command_is_starting_until_its_output_says_that_it_listens(new_system: SystemFactory) -> None:
    system = new_system(worker(run=PLAIN, ready=LISTENS), scripts=lives(Behaviour(healthy_after=7))).start()
    system.run_to(6.9)
    status = system.status()
    assert (status.shown, status.uptime_s) == (ShownStatus.STARTING, 6.9)
    assert status.not_ready == ("output matching /listening/",)
    system.run_to(8)
    assert system.changes() == [(7, HEALTHY)]
    assert (system.status().shown, system.status().not_ready) == (ShownStatus.HEALTHY, ())


def test_a_worker_that_speaks_the_protocol_is_healthy_when_both_hold(new_system: SystemFactory) -> None:
    system = new_system(worker(ready=ReadyPolicy(after_s=5))).start()
    system.run(20)
    assert system.changes() == [(5, HEALTHY)]


def test_a_start_that_takes_too_long_is_a_death_with_the_last_words_of_its_conditions(
    new_system: SystemFactory,
) -> None:
    spec = worker(run=PLAIN, ready=LISTENS, restart={"enabled": False}, health={"startup_timeout_s": 30})
    system = new_system(spec, scripts=lives(Behaviour(healthy_after=None))).start()
    system.run_to(10)
    refusal = ConditionChecked(W, 1, Condition.OUTPUT, is_met=False, words="no line yet")
    system.actors.monitor.tell(refusal)
    system.run_to(60)
    ((at, changed),) = system.events(StatusChanged)
    assert (at, changed.new) == (30, DEAD)
    death = system.deaths()[0].death
    assert (death.cause, death.was_ready) == (Cause.STARTUP_TIMEOUT, False)
    assert death.detail == "not ready within 30 s: output matching /listening/: no line yet"


def test_a_look_at_an_earlier_incarnation_is_ignored(new_system: SystemFactory) -> None:
    spec = worker(run=PLAIN, ready=LISTENS)
    system = new_system(spec, scripts=lives(dies_after(3), Behaviour(healthy_after=None))).start()
    system.run_to(5)
    assert system.status().generation == 2
    system.actors.monitor.tell(ConditionChecked(W, 1, Condition.OUTPUT, is_met=True))
    system.run_to(6)
    assert system.status().shown is ShownStatus.STARTING
    system.actors.monitor.tell(ConditionChecked(W, 2, Condition.OUTPUT, is_met=True))
    system.run_to(7)
    assert system.status().shown is ShownStatus.HEALTHY


def test_a_death_says_whether_the_worker_had_been_ready(new_system: SystemFactory) -> None:
    ready = ReadyPolicy(after_s=2)
    system = new_system(worker(run=PLAIN, ready=ready), scripts=lives(dies_after(1), dies_after(9))).start()
    system.run_to(12)
    assert [event.death.was_ready for event in system.deaths()] == [False, True]


def test_a_suspend_during_a_recovery_does_not_make_a_worker_ready(new_system: SystemFactory) -> None:
    """The time that it was granted came without the conditions that it still awaits."""
    never = lives(Behaviour(healthy_after=None))
    system = new_system(worker(ready=LISTENS), scripts=never).start()
    system.processes.say(W, Frame(status="recovering", recover_for_s=30))
    system.run(1)
    system.runtime.virtual_clock.now += 100
    system.run(1)
    system.processes.say(W, Frame(status="healthy"))
    system.run(1)
    assert [new for _, new in system.changes()] == [RECOVERING, PENDING]
    system.actors.monitor.tell(ConditionChecked(W, 1, Condition.OUTPUT, is_met=True))
    system.run(1)
    assert system.status().status is HEALTHY


@pytest.mark.parametrize(("until", "starts_at"), [({}, 9), ({"task": "done"}, 9), ({"task": "ready"}, 4)])
def test_a_worker_waits_until_a_task_is_ready_or_done_as_its_spec_says(
    new_system: SystemFactory, until: dict[str, str], starts_at: float
) -> None:
    task = worker("task", run=PLAIN, kind="once", ready=ReadyPolicy(after_s=4))
    last = worker("last", after=("task",), until=until)
    system = new_system(task, last, scripts={"task": lambda _: dies_after(9, exit=0)}).start()
    system.run_to(20)
    assert system.starts("last") == [starts_at]


def slow_group(count: int, **changes: Any) -> list[WorkerSpec]:
    """Plain commands that say that they listen some time after their start."""
    return [worker(f"w{n}", run=PLAIN, ready=LISTENS, group="w", **changes) for n in range(count)]


def slowly(count: int, seconds: float) -> dict[str, Script]:
    """Scripts of commands that are ready after this many seconds."""
    return {f"w{n}": (lambda _: Behaviour(healthy_after=seconds)) for n in range(count)}


def test_a_recycle_waits_until_the_worker_before_it_is_ready(new_system: SystemFactory) -> None:
    recycle = RecyclePolicy(after_s=100, jitter=0, min_healthy=2)
    system = new_system(*slow_group(3, recycle=recycle), scripts=slowly(3, 7)).start()
    system.run_to(150)
    assert sorted(system.starts(f"w{n}")[1] for n in range(3)) == [100, 107, 114]


def test_a_canary_has_proved_nothing_until_it_is_ready(new_system: SystemFactory) -> None:
    away = BreakerPolicy(name="db", deaths=2, window_s=30, canary_delay_s=10, hold_s=5)
    scripts = {f"w{n}": lives(dies_after(20), then=Behaviour(healthy_after=9)) for n in range(3)}
    system = new_system(*slow_group(3, breaker=away), scripts=scripts).start()
    system.run_to(100)
    canary, *others = sorted(system.starts(f"w{n}")[1] for n in range(3))
    assert canary == 30
    assert others == [30 + 9 + 5] * 2  # ready, and healthy for as long as the breaker holds


def test_a_hundred_probed_workers_that_are_killed_at_once_come_back_without_a_herd() -> None:
    alive = AlivePolicy(tcp=TcpProbe("localhost:80"), every_s=5)
    specs = slow_group(100, alive=alive, restart={"max_delay_s": 1})
    system = SimulatedSystem(*specs, scripts=slowly(100, 2), max_concurrent_starts=5).start()
    system.run_to(60)
    assert all(status.shown is ShownStatus.HEALTHY for status in system.report().workers)
    for spec in specs:
        process = system.processes.living(spec.id)
        assert process is not None
        process.receive_signal(9, "fault")
    at_once = 0
    for _ in range(600):
        system.run(0.1)
        starting = [each for each in system.report().workers if each.pid and each.shown == "starting"]
        at_once = max(at_once, len(starting))
    assert at_once == 5
    assert all(status.shown is ShownStatus.HEALTHY for status in system.report().workers)
    assert [len(system.deaths(spec.id)) for spec in specs] == [1] * 100
