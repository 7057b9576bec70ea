"""Running jobs that have to end, because they were cancelled or take too long, in virtual time."""

from __future__ import annotations

from typing import Any

from tests.virtual.conftest import SystemFactory
from tests.virtual.simulated_system import SimulatedSystem, W, lives, worker

from rekindle.actors.facts.jobs import NewJob
from rekindle.actors.messages import JobCancelled, JobRequeued, JobTimedOut, WorkerDied, WorkerRecycled
from rekindle.actors.messages.internal.to_desks import QueuesTouched
from rekindle.actors.ports import CancelledJob
from rekindle.actors.simulation import Behaviour, runs

DEAF = Behaviour(ignores_request=True, ignores_term=True, job=1)


def serving(new_system: SystemFactory, *jobs: NewJob, concurrency: int = 1) -> SimulatedSystem:
    """A system whose worker, which obeys nothing but SIGKILL, executes these jobs."""
    policy: dict[str, Any] = {"queues": ("tag",), "concurrency": concurrency, "cancel_grace_s": 5.0}
    system = new_system(worker(jobs=policy), scripts=lives(DEAF, then=runs()))
    system.memory.jobs.wall_ms = system.runtime.clock.wall_ms
    system.memory.jobs.add("tag", jobs)
    system.start()
    system.run(1.0)
    for _ in jobs:
        assert system.memory.jobs.claim("tag", W, 1, "") is not None
    return system


def cancel(system: SimulatedSystem, job: int) -> None:
    """Cancel a job, as a host does."""
    system.memory.jobs.cancel([job])
    system.actors.watch.tell(QueuesTouched((job,)))


def states(system: SimulatedSystem) -> list[str]:
    """The state of every job, oldest first."""
    return [job.state for job in reversed(system.memory.jobs.find())]


def test_a_cancelled_job_is_asked_to_end_and_then_ended_with_its_process(new_system: SystemFactory) -> None:
    system = serving(new_system, NewJob(payload="{}"))
    cancel(system, 1)
    system.run(1.0)
    asked = [what for _, _, what in system.processes.controls]
    assert asked
    assert set(asked) == {CancelledJob(1, 1)}
    assert states(system) == ["running"]
    system.run(20.0)
    assert states(system) == ["cancelled"]
    ((_, recycled),) = system.events(WorkerRecycled)
    assert recycled.reason == "job 1 was cancelled and did not end"
    assert [event.job_id for _, event in system.events(JobCancelled)] == [1]


def test_neither_the_worker_nor_a_job_is_blamed_for_a_cancelled_job(new_system: SystemFactory) -> None:
    system = serving(new_system, NewJob(payload="{}"), NewJob(payload="{}"), concurrency=2)
    cancel(system, 1)
    system.run(60.0)
    assert states(system) == ["cancelled", "pending"]
    assert system.events(WorkerDied) == []
    assert system.status().restart_count == 0
    assert system.memory.jobs.crashes([1, 2]) == ()
    ((_, requeued),) = system.events(JobRequeued)
    assert (requeued.job_id, requeued.counted) == (2, False)


def test_a_job_that_takes_too_long_is_ended_with_its_process_and_only_it_fails(
    new_system: SystemFactory,
) -> None:
    system = serving(new_system, NewJob(payload="{}", timeout_ms=3000), NewJob(payload="{}"), concurrency=2)
    system.actors.watch.tell(QueuesTouched((1,)))
    system.run(7.0)
    assert states(system) == ["running", "running"]
    system.run(30.0)
    assert states(system) == ["error", "pending"]
    assert system.memory.jobs.get(1).error == "timed out after 3 s; its process was ended"
    assert system.events(WorkerDied) == []
    assert [(event.job_id, event.retried) for _, event in system.events(JobTimedOut)] == [(1, False)]


def test_a_job_that_has_not_begun_in_time_expires_by_itself(new_system: SystemFactory) -> None:
    system = new_system(worker(jobs={"queues": ("tag",)}))
    system.memory.jobs.wall_ms = system.runtime.clock.wall_ms
    system.start()
    system.run(1.0)
    expires = system.runtime.clock.wall_ms() + 30_000
    system.memory.jobs.add("tag", [NewJob(payload="{}", expires_at_wall_ms=expires)])
    system.actors.watch.tell(QueuesTouched((1,)))
    system.run(29.0)
    assert states(system) == ["pending"]
    system.run(2.0)
    assert states(system) == ["expired"]


def test_a_job_that_another_process_cancels_is_seen_while_it_runs(new_system: SystemFactory) -> None:
    """Nothing tells the supervisor of it."""
    system = serving(new_system, NewJob(payload="{}"))
    system.memory.jobs.cancel([1])
    system.run(2.0)
    assert CancelledJob(1, 1) in [what for _, _, what in system.processes.controls]
