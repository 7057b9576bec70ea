"""A scheduled worker that comes from another node of a cluster goes on with the timetable it had there."""

from __future__ import annotations

from tests.virtual.conftest import SystemFactory
from tests.virtual.schedules.scheduled import by_clock, states
from tests.virtual.simulated_system import SimulatedSystem, W, lives, worker

from rekindle.actors.facts.records import RememberedWorker
from rekindle.actors.messages import AddWorker, Done, RemoveWorker
from rekindle.actors.simulation import exits
from rekindle.actors.spec.worker_spec import WorkerSpec

SHORT, LONG = lives(exits(after_s=5)), lives(exits(after_s=500))


def node(new_system: SystemFactory, *, script: object = SHORT) -> SimulatedSystem:
    """A supervisor that runs, without the worker."""
    return new_system(worker("other"), scripts={W: script}).start()


def arrive(system: SimulatedSystem, spec: WorkerSpec, known: RememberedWorker) -> None:
    answer = system.ask(lambda inbox: AddWorker(spec, inbox, {}, known))
    assert isinstance(answer, Done)


def timetable(system: SimulatedSystem) -> str:
    """What the journal of its node has."""
    return system.memory.load().meta[f"schedule:{W}"]


def test_a_run_that_ended_with_its_node_is_made_up_for_on_the_next_one(new_system: SystemFactory) -> None:
    first = node(new_system, script=LONG)
    arrive(first, by_clock(), RememberedWorker())
    first.run_to(150)
    assert states(first) == ["running"]
    kept = timetable(first)
    second = node(new_system)
    second.run_to(160)
    arrive(second, by_clock(), RememberedWorker(timetable=kept, scheduled_since_wall_ms=0))
    second.run(10)
    assert states(second) == ["lost:supervisor_lost", "succeeded"]


def test_a_run_that_was_due_before_the_worker_arrived_is_made_up_for_although_none_was_before(
    new_system: SystemFactory,
) -> None:
    system = node(new_system)
    since_ms = system.runtime.clock.wall_ms()
    system.run_to(110)  # on the former node nothing was due yet
    arrive(system, by_clock(), RememberedWorker(scheduled_since_wall_ms=since_ms))
    system.run(20)
    assert states(system) == ["missed:supervisor_down", "succeeded"]


def test_a_move_ends_a_run_and_the_next_node_repeats_it(new_system: SystemFactory) -> None:
    system = node(new_system, script=LONG)
    arrive(system, by_clock(), RememberedWorker())
    system.run_to(150)
    system.tell(RemoveWorker(W, moves=True))
    system.run(10)
    assert states(system) == ["stopped:shutdown"]
    arrive(system, by_clock(), RememberedWorker(timetable=timetable(system)))
    system.run(10)
    assert states(system) == ["stopped:shutdown", "running"]
