"""What becomes of the jobs of workers that end, in virtual time."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import pytest
from tests.contract.records import death
from tests.virtual.conftest import SystemFactory
from tests.virtual.faults import Mistake, at
from tests.virtual.simulated_system import SimulatedSystem, W, lives, uptimes, worker

from rekindle.actors.deaths.death import Exit
from rekindle.actors.errors import StoreUnavailableError
from rekindle.actors.facts.jobs import JobSettled, NewJob
from rekindle.actors.facts.records import ClaimsReleased, Record
from rekindle.actors.job_desk import JobDesk
from rekindle.actors.messages import ChangeWorkers, JobConvicted, JobRequeued
from rekindle.actors.messages.internal.to_desks import IncarnationEnded
from rekindle.actors.simulation import Behaviour, runs
from rekindle.persistence import MemoryStore

JOBS: dict[str, Any] = {"jobs": {"queues": ("tag",)}}


def with_jobs(new_system: SystemFactory, *scripts: Any, **settings: Any) -> SimulatedSystem:
    """A system with one worker that serves the queue `tag`, which has one job."""
    system = new_system(worker(**{**JOBS, **settings}), scripts=scripts[0] if scripts else None)
    system.memory.jobs.add("tag", [NewJob(payload="{}")])
    return system.start()


def claim(system: SimulatedSystem, generation: int = 1) -> int:
    """Have the worker claim the job, which is ours to do: its process is a script."""
    claimed = system.memory.jobs.claim("tag", W, generation, "")
    assert claimed is not None
    return claimed.id


def test_jr_01_an_idle_worker_s_death_touches_no_job(new_system: SystemFactory) -> None:
    system = with_jobs(new_system, uptimes(5.0))
    system.run(10.0)
    assert system.memory.jobs.get(1).state == "pending"
    assert system.events(JobRequeued) == []


def test_jr_02_the_job_of_a_dead_worker_is_requeued_at_the_moment_of_its_death(
    new_system: SystemFactory,
) -> None:
    system = with_jobs(new_system, uptimes(5.0))
    system.run(1.0)
    job = claim(system)
    system.run(5.0)
    ((moment, requeued),) = system.events(JobRequeued)
    assert (moment, requeued.job_id, requeued.crash_count, requeued.counted) == (5.0, job, 1, True)
    assert system.memory.jobs.get(job).state == "pending"


def test_jr_03_jr_06_the_third_death_convicts_although_the_worker_is_given_up(
    new_system: SystemFactory,
) -> None:
    few = {"max_in_window": 2, "initial_delay_s": 1.0}
    system = with_jobs(new_system, uptimes(5.0, 5.0, 5.0), restart=few)
    for generation in (1, 2, 3):
        system.runtime.run_until(lambda: system.status().pid is not None, system.now + 60)
        job = claim(system, generation)
        system.run(5.0)
    assert system.status().shown == "failed"
    ((_, convicted),) = system.events(JobConvicted)
    assert (convicted.job_id, convicted.crash_count, convicted.generation) == (job, 3, 3)


def test_a_job_is_released_while_the_system_stops_and_not_counted(new_system: SystemFactory) -> None:
    system = with_jobs(new_system, lives(Behaviour(ignores_request=True, ignores_term=True)))
    system.run(1.0)
    job = claim(system)
    assert system.shut_down()[0].killed
    ((_, requeued),) = system.events(JobRequeued)
    assert (requeued.job_id, requeued.counted, requeued.crash_count) == (job, False, 0)


def test_a_worker_that_hangs_keeps_its_job_until_its_process_is_gone(new_system: SystemFactory) -> None:
    """Until then it may still be at work: two must never hold one job."""
    system = with_jobs(
        new_system, lives(Behaviour(heartbeat=inf, ignores_request=True, ignores_term=True), then=runs())
    )
    system.run(1.0)
    job = claim(system)
    system.runtime.run_until(lambda: bool(system.deaths()), system.now + 60)
    assert system.memory.jobs.get(job).state == "running"
    system.runtime.run_until(lambda: bool(system.ends()), system.now + 60)
    system.runtime.settle()
    assert system.memory.jobs.get(job).state == "pending"
    (crash,) = system.memory.jobs.crashes([job])
    assert crash.cause.startswith("heartbeat lost")


def test_with_the_store_gone_the_release_waits_and_happens_in_order(new_system: SystemFactory) -> None:
    system = with_jobs(new_system, uptimes(5.0))
    system.run(1.0)
    job = claim(system)
    system.memory.fault = StoreUnavailableError("gone")
    system.run(30.0)
    assert system.status().generation == 2
    assert system.memory.jobs.get(job).state == "running"
    system.memory.fault = None
    system.run(30.0)
    assert (system.memory.jobs.get(job).state, system.memory.jobs.get(job).crash_count) == ("pending", 1)


def test_jr_11_an_end_that_is_reported_twice_is_recorded_once(new_system: SystemFactory) -> None:
    system = with_jobs(new_system)
    system.run(1.0)
    claim(system)
    system.memory.commit([death(component_id=W)])
    told = IncarnationEnded(
        component_id=W, generation=1, counted=True, crash_retries=2, cause="told twice", exit=Exit(code=1)
    )
    for _ in range(2):
        system.actors.desk.tell(told)
        system.runtime.settle()
    assert len(system.events(JobRequeued)) == 1
    assert system.memory.jobs.get(1).crash_count == 1


@pytest.mark.parametrize("after", [False, True])
def test_a_desk_that_makes_a_mistake_releases_the_job_all_the_same(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    mistake = Mistake(JobDesk, at(IncarnationEnded), after=after).put_in(monkeypatch)
    system = with_jobs(new_system, uptimes(5.0))
    system.run(1.0)
    job = claim(system)
    system.run(5.0)
    assert mistake.made == 1
    assert (system.memory.jobs.get(job).state, system.memory.jobs.get(job).crash_count) == ("pending", 1)


class Journal(MemoryStore):
    """A store that notes what it is given to keep."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: set[type[Record]] = set()

    def commit(self, records: Sequence[Record]) -> tuple[JobSettled, ...]:
        """Note the kinds, then write."""
        self.kinds |= {type(record) for record in records}
        return super().commit(records)


@pytest.mark.parametrize("settings", [{}, JOBS])
def test_only_workers_that_serve_queues_have_claims_to_release(
    new_system: SystemFactory, settings: dict[str, Any]
) -> None:
    store = Journal()
    new_system(worker(**settings), scripts=uptimes(5.0), store=store).start().run(10.0)
    assert (ClaimsReleased in store.kinds) is bool(settings)


def test_the_job_of_a_worker_that_no_longer_serves_a_queue_is_still_released(
    new_system: SystemFactory,
) -> None:
    """A reload took its queues away; the process that is stopped for it leaves its job behind."""
    system = with_jobs(new_system, lives(Behaviour(ignores_request=True, ignores_term=True), then=runs()))
    system.run(1.0)
    job = claim(system)
    system.tell(ChangeWorkers((worker(),)))
    system.run(20.0)
    assert len(system.starts()) == 2
    assert system.memory.jobs.get(job).state == "pending"
    assert [event.counted for _, event in system.events(JobRequeued)] == [False]


def test_a_worker_that_crashes_while_it_is_stopped_brings_no_blame_on_its_job(
    new_system: SystemFactory,
) -> None:
    """Its end is not recorded as a death: an operator asked for it."""
    system = with_jobs(new_system, lives(Behaviour(stops_after=5.0, dies_after=3.0, signal=11)))
    system.run(1.0)
    job = claim(system)
    system.shut_down()
    ((_, requeued),) = system.events(JobRequeued)
    assert (requeued.job_id, requeued.counted, requeued.crash_count) == (job, False, 0)
    assert system.memory.jobs.crashes([job]) == ()
