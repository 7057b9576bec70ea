"""What becomes of a worker that hangs, to the tenth of a second."""

from __future__ import annotations

from math import inf

from tests.virtual.conftest import SystemFactory
from tests.virtual.simulated_system import W, lives, worker

from rekindle.actors.deaths.death import Cause
from rekindle.actors.deaths.findings import Finding
from rekindle.actors.facts.frames import Frame
from rekindle.actors.messages import StopStepTaken
from rekindle.actors.simulation import Behaviour, runs

STUBBORN = Behaviour(heartbeat=inf, ignores_term=True, shows_stacks=True)


def test_a_hung_worker_is_asked_for_its_stacks_then_terminated_then_killed_each_step_an_event(
    new_system: SystemFactory,
) -> None:
    system = new_system(scripts=lives(STUBBORN, then=runs())).start()
    system.run(60)
    assert [(at, step.step) for at, step in system.events(StopStepTaken)] == [
        (15.0, "stacks"),
        (15.5, "SIGTERM"),
        (17.5, "SIGKILL"),
    ]
    assert system.processes.stacks == [(15.0, W)]
    assert system.ends() == [17.5]


def test_one_that_cannot_show_its_stacks_is_not_waited_for(new_system: SystemFactory) -> None:
    system = new_system(scripts=lives(Behaviour(heartbeat=inf), then=runs())).start()
    system.run(60)
    assert (system.processes.stacks, system.ends()) == ([], [15])


def test_a_hung_death_is_judged_again_when_its_process_has_ended(new_system: SystemFactory) -> None:
    system = new_system(scripts=lives(STUBBORN, then=runs())).start()
    system.run_to(16)
    [open_] = system.memory.bundles(W)
    assert (open_.finding, open_.signal) == (Finding.HUNG, None)
    system.run_to(30)
    [closed] = system.memory.bundles(W)
    assert (closed.finding, closed.signal) == (Finding.HUNG, 9)


def test_work_that_does_not_move_ends_a_worker_whose_heart_beats(new_system: SystemFactory) -> None:
    spec = worker(health={"progress_timeout_s": 20})
    system = new_system(spec, scripts=lives(Behaviour(job=7), then=runs())).start()
    system.run(60)
    assert system.ends() == [20]
    assert system.memory.deaths(W)[0].cause is Cause.NO_PROGRESS


def test_work_that_moves_is_left_alone_however_long_the_job_takes(new_system: SystemFactory) -> None:
    spec = worker(health={"progress_timeout_s": 2})
    system = new_system(spec, scripts=lives(Behaviour(heartbeat=inf), then=runs())).start()
    for second in range(1, 60):
        system.processes.say(W, Frame("healthy", current_job=7, progress=second))
        system.run_to(second)
    assert system.ends() == []
    system.run_to(62)
    assert system.memory.deaths(W)[0].cause is Cause.NO_PROGRESS
