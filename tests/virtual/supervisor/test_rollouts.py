"""Rollouts in virtual time: new processes are ready before old ones stop, and the first bad one ends it."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from tests.virtual.simulated_system import Listener, SimulatedSystem, worker

from rekindle.actors import Done, DrainPolicy, RecyclePolicy, Refused, RolloutPolicy, Status, StopPolicy
from rekindle.actors.messages import (
    ChangeWorkers,
    PauseWorkers,
    RollOut,
    RolloutAdvanced,
    RolloutEnded,
    RolloutStarted,
    Shutdown,
    StopWorkers,
    WorkerDied,
    WorkersChanged,
)
from rekindle.actors.messages.internal.hand_over import ReportMemory
from rekindle.actors.ports import Control
from rekindle.actors.simulation import Behaviour, Script, dies_after
from rekindle.actors.spec.program import PythonCall
from rekindle.actors.spec.worker_spec import WorkerSpec

SLOW = Behaviour(healthy_after=2.0, stops_after=1.0)
"""Is ready after two seconds, and takes one to stop."""


def members(count: int, **settings: Any) -> list[WorkerSpec]:
    return [worker(f"worker:web:{number}", group="web", **settings) for number in range(count)]


def slow(*_: object) -> Script:
    return lambda _generation: SLOW


def started(*specs: WorkerSpec, scripts: dict[str, Script] | None = None) -> SimulatedSystem:
    """A system whose workers are all ready."""
    known = {f"worker:web:{number}": slow() for number in range(6)}
    system = SimulatedSystem(*specs, scripts={**known, **(scripts or {})}).start()
    system.run(10)
    return system


def counts(system: SimulatedSystem, seconds: float) -> tuple[int, int]:
    """The fewest ready workers and the most processes at any moment of this time."""
    fewest, most = 1000, 0
    end = system.now + seconds
    while system.now < end:
        system.run(0.05)
        statuses = system.report().workers
        fewest = min(fewest, sum(each.status is Status.HEALTHY for each in statuses))
        most = max(most, sum(system.processes.alive(each.component_id) for each in statuses))
    return fewest, most


def steps(system: SimulatedSystem) -> list[str]:
    return [event.step for _, event in system.events(RolloutAdvanced)]


def ended(system: SimulatedSystem) -> list[str]:
    return [event.problem for _, event in system.events(RolloutEnded)]


@pytest.mark.parametrize(("count", "surge"), [(1, 1), (3, 1), (4, 2), (2, 5)])
def test_there_are_never_fewer_ready_workers_than_wanted_nor_more_than_the_surge_allows(
    count: int, surge: int
) -> None:
    system = started(*members(count))
    assert system.ask(lambda inbox: RollOut("web", inbox, surge)) == Done()
    fewest, most = counts(system, 120)
    assert fewest == count
    assert most == count + min(surge, count)
    assert ended(system) == [""]
    ids = [f"worker:web:{number}" for number in range(count)]
    assert [each.component_id for each in system.report().workers] == ids, "the spares are gone"
    assert [system.status(id_).generation for id_ in ids] == [2] * count
    assert system.events(WorkerDied) == []


def test_every_step_is_an_event_and_the_report_shows_the_state() -> None:
    system = started(*members(2))
    system.tell(RollOut("web", None, 1))
    assert [(each.workers, each.spares) for _, each in system.events(RolloutStarted)] == [
        (("worker:web:0", "worker:web:1"), ("worker:web:2",))
    ]
    (status,) = system.report().rollouts
    assert (status.stage, status.replaced, status.reason) == ("raise", (), "operator_restart")
    system.run(120)
    assert steps(system) == ["raise", "replace", "replaced", "replace", "replaced", "lower"]
    (status,) = system.report().rollouts
    assert (status.stage, status.replaced) == ("over", ("worker:web:0", "worker:web:1"))


def test_a_spare_that_dies_ends_the_rollout_and_the_old_processes_go_on() -> None:
    system = started(*members(2), scripts={"worker:web:2": lambda _: dies_after(3)})
    system.tell(RollOut("web", None, 1))
    system.run(60)
    assert steps(system) == ["raise", "lower"]
    assert ended(system) == ["the new process of worker:web:2 ended soon after it was ready"]
    assert [each.generation for each in system.report().workers] == [1, 1]


def test_a_spare_that_never_gets_ready_ends_the_rollout() -> None:
    never = Behaviour(healthy_after=None)
    system = started(*members(1), scripts={"worker:web:1": lambda _: never})
    system.tell(RollOut("web", None, 1))
    fewest, _ = counts(system, 200)
    assert fewest == 1
    assert ended(system) == ["the new process of worker:web:1 ended before it was ready"]
    assert system.status("worker:web:0").generation == 1


BETTER = PythonCall("app:better")


def changed(system: SimulatedSystem, specs: list[WorkerSpec]) -> WorkersChanged:
    reply = system.ask(lambda inbox: ChangeWorkers(tuple(specs), inbox))
    assert isinstance(reply, WorkersChanged), reply
    return reply


def test_a_changed_worker_with_the_policy_is_rolled_out_and_others_are_restarted() -> None:
    rolling = members(2, rollout=RolloutPolicy(settle_s=1))
    other = worker("worker:other:0")
    system = started(*rolling, other)
    reply = changed(system, [*(replace(each, run=BETTER) for each in rolling), replace(other, run=BETTER)])
    assert reply.changes.rolled_out == ("worker:web:0", "worker:web:1")
    assert set(reply.changes.restarted) == {"worker:web:0", "worker:web:1", "worker:other:0"}
    fewest, most = counts(system, 60)
    assert (fewest >= 2, most <= 4) == (True, True)
    assert ended(system) == [""]
    # The processes run what was declared.
    assert {process.request.spec.run for process in map(system.processes.latest, ids(system)) if process} == {
        BETTER
    }


def ids(system: SimulatedSystem) -> list[str]:
    return [each.component_id for each in system.report().workers]


def test_a_bad_configuration_is_put_back_where_it_was_applied() -> None:
    rolling = members(2, rollout=RolloutPolicy(settle_s=1))
    bad = iter((SLOW, dies_after(0.5)))
    system = started(*rolling, scripts={"worker:web:1": lambda _: next(bad, SLOW)})
    changed(system, [replace(each, run=BETTER) for each in rolling])
    fewest, most = counts(system, 90)
    assert (fewest, most) == (2, 3)
    assert ended(system) == ["the new process of worker:web:1 ended soon after it was ready"]
    assert steps(system).count("put_back") == 2
    runs = [process.request.spec.run for process in map(system.processes.latest, ids(system)) if process]
    assert runs == [rolling[0].run, rolling[1].run], "the old configuration is back"


def test_while_a_rollout_is_under_way_no_other_begins_and_no_file_is_applied() -> None:
    rolling = members(1, rollout=RolloutPolicy())
    system = started(*rolling)
    system.tell(RollOut("web"))
    for order in (
        lambda inbox: RollOut("web", inbox),
        lambda inbox: ChangeWorkers((replace(rolling[0], run=BETTER),), inbox),
    ):
        reply = system.ask(order)
        assert isinstance(reply, Refused)
        assert "a rollout of web is under way" in reply.reason
    system.run(60)
    assert ended(system) == [""]


@pytest.mark.parametrize("name", ["nothing", "worker:web:9"])
def test_a_name_that_no_worker_has_is_refused(name: str) -> None:
    reply = started(*members(1)).ask(lambda inbox: RollOut(name, inbox))
    assert isinstance(reply, Refused)
    assert "no workers are called" in reply.reason


def test_a_table_without_a_running_service_is_refused() -> None:
    system = started(*members(1))
    system.tell(StopWorkers(None))
    system.run(5)
    reply = system.ask(lambda inbox: RollOut("web", inbox))
    assert isinstance(reply, Refused)


def test_a_worker_is_recycled_without_a_gap_one_of_its_table_at_a_time() -> None:
    recycle = RecyclePolicy(after_s=30, jitter=0)
    system = started(*members(2, recycle=recycle, rollout=RolloutPolicy(settle_s=1)))
    fewest, most = counts(system, 50)
    assert (fewest, most) == (2, 3)
    assert [each.reason for _, each in system.events(RolloutStarted)] == ["recycle", "recycle"]
    assert [each.generation for each in system.report().workers] == [2, 2]


def test_none_begins_in_the_moment_in_which_the_supervisor_is_replaced() -> None:
    """The next program would not know of it, and would kill the additional process without draining it."""
    recycle = RecyclePolicy(after_s=30, jitter=0)
    system = started(*members(1, recycle=recycle, rollout=RolloutPolicy(settle_s=1)))
    listener = Listener(lambda: system.now)
    system.tell(ReportMemory(listener, holds=True))
    assert listener.messages
    refused = system.ask(lambda inbox: RollOut("web", inbox, 1))
    assert isinstance(refused, Refused)
    assert "is being upgraded" in refused.reason
    system.run(60)
    assert system.events(RolloutStarted) == []
    system.tell(ReportMemory(listener))  # it was called off
    system.run(20)
    assert [each.reason for _, each in system.events(RolloutStarted)] == ["recycle"]


def test_the_old_process_is_drained_before_it_stops_and_the_spare_too() -> None:
    stop = StopPolicy(drain=DrainPolicy(within_s=4))
    system = started(*members(1, stop={"drain": stop.drain}))
    system.tell(RollOut("web", None, 1))
    system.run(60)
    drained = [id_ for _, id_, control in system.processes.controls if control is Control.DRAIN]
    assert drained == ["worker:web:0", "worker:web:1"]


def test_a_shutdown_in_the_middle_of_a_rollout_leaves_nothing() -> None:
    system = started(*members(2))
    system.tell(RollOut("web", None, 1))
    system.run(4)
    system.tell(Shutdown(None))
    system.run(60)
    assert not any(system.processes.alive(f"worker:web:{number}") for number in range(3))


def test_a_pause_in_the_middle_of_a_rollout_ends_it() -> None:
    system = started(*members(1))
    system.tell(RollOut("web", None, 1))
    system.run(1)
    system.tell(PauseWorkers(None))
    system.run(400)
    assert len(ended(system)) == 1
    assert ended(system) != [""]
    assert ids(system) == ["worker:web:0"]


def test_a_worker_that_an_operator_stops_meanwhile_stays_stopped() -> None:
    system = started(*members(2))
    system.tell(RollOut("web", None, 1))
    system.run(9)
    system.tell(StopWorkers(("worker:web:0",)))
    system.run(200)
    assert len(ended(system)) == 1
    assert not system.processes.alive("worker:web:0")
    assert system.status("worker:web:1").status is Status.HEALTHY


def test_a_worker_with_the_id_of_an_additional_one_cannot_be_declared_meanwhile() -> None:
    recycled = members(1, recycle=RecyclePolicy(after_s=20, jitter=0), rollout=RolloutPolicy())
    system = started(*recycled)
    system.run(12)
    assert ids(system) == ["worker:web:0", "worker:web:1"]
    two = tuple(members(2, rollout=RolloutPolicy()))
    reply = system.ask(lambda inbox: ChangeWorkers(two, inbox))
    assert isinstance(reply, Refused)
    assert "worker:web:1 exists for the time of a rollout" in reply.reason


def test_many_bad_versions_are_not_held_against_a_good_one() -> None:
    lives = iter([dies_after(0.5)] * 30)
    system = started(*members(1), scripts={"worker:web:1": lambda _: next(lives, SLOW)})
    for _ in range(31):
        system.tell(RollOut("web", None, 1))
        system.run(20)
    assert [bool(problem) for problem in ended(system)] == [True] * 30 + [False]


@pytest.mark.parametrize("seed", range(40))
def test_whatever_dies_meanwhile_a_rollout_ends_and_leaves_the_workers_that_were_there(seed: int) -> None:
    chance = random.Random(seed)
    count, surge = chance.randint(1, 4), chance.randint(1, 3)
    specs = members(count, restart={"max_in_window": None, "max_lifetime": None})

    def life(_generation: int) -> Behaviour:
        ready = chance.choice((0.5, 2.0, 2.0, None))
        behaviour = Behaviour(healthy_after=ready, stops_after=chance.uniform(0, 3))
        return behaviour | dies_after(chance.uniform(1, 60)) if chance.random() < 0.3 else behaviour

    scripts: dict[str, Script] = {f"worker:web:{number}": life for number in range(count + surge)}
    system = SimulatedSystem(*specs, scripts=scripts, seed=seed).start()
    system.run(chance.uniform(1, 20))
    system.tell(RollOut("web", None, surge))
    for _ in range(chance.randint(0, 6)):
        system.run(chance.uniform(0, 10))
        system.processes.kill(f"worker:web:{chance.randrange(count + surge)}")
        assert sum(system.processes.alive(id_) for id_ in scripts) <= count + surge
    system.run(1500)
    assert len(system.events(RolloutStarted)) == len(system.events(RolloutEnded))
    assert ids(system) == [spec.id for spec in specs]
    assert not any(system.processes.alive(f"worker:web:{number}") for number in range(count, count + surge))
    assert system.processes.overlaps == []
