"""Real processes that use too much: memory, processor time, descriptors, also in their children."""

from __future__ import annotations

import pytest
from tests.processes.conftest import Rows, Run
from tests.processes.policies import python, shell, sleeper
from tests.processes.waiting import PATIENCE_S, eventually

from rekindle.actors import (
    Cause,
    RecyclePolicy,
    ResourceLimits,
    ResourceViolated,
    Status,
    WorkerDied,
    WorkerRecycled,
    WorkerSpec,
)

OFTEN = 0.1


def killed_for(run: Run, spec: WorkerSpec) -> WorkerDied:
    """The first death of the worker, which is killed for what it uses."""
    system = run(spec)
    with system.events() as events:
        died = events.until(lambda event: isinstance(event, WorkerDied), PATIENCE_S)
    assert isinstance(died, WorkerDied)
    assert (died.death.cause, died.death.exit.signal) == (Cause.RESOURCE_LIMIT, 9)
    return died


@pytest.mark.usefixtures("both_ways")
def test_rl_04_rl_07_a_worker_that_takes_too_much_memory_is_killed_and_comes_back(
    run: Run, rows: Rows
) -> None:
    limits = ResourceLimits(kill_memory_mb=200, violations=2, interval_s=OFTEN)
    died = killed_for(run, python("take_memory_once", "w", limits=limits))
    assert "the limit is 200 MB" in died.death.detail
    assert eventually(lambda: rows.deaths("w") == [(1, "resource_limit", None, 9, "restart")])


def test_rl_02_a_busy_worker_is_killed_for_its_processor_time(run: Run) -> None:
    limits = ResourceLimits(kill_cpu_percent=10, violations=2, interval_s=OFTEN)
    died = killed_for(run, shell("w", "while :; do :; done", limits=limits))
    assert "% CPU" in died.death.detail


def test_what_a_worker_starts_counts_as_its_own(run: Run) -> None:
    limits = ResourceLimits(kill_threads=3, interval_s=OFTEN)
    died = killed_for(run, shell("w", "sleep 99 & sleep 99 & sleep 99 & wait", limits=limits))
    assert died.death.detail == "4 threads, the limit is 3 threads"


def test_a_worker_that_leaks_descriptors_is_killed(run: Run) -> None:
    limits = ResourceLimits(kill_descriptors=100, interval_s=OFTEN)
    died = killed_for(
        run, shell("w", 'for i in {10..200}; do eval "exec $i</dev/null"; done; sleep 99', limits=limits)
    )
    assert "descriptors" in died.death.detail


@pytest.mark.usefixtures("both_ways")
def test_a_modest_worker_is_left_alone_while_its_neighbour_is_killed(run: Run) -> None:
    limits = ResourceLimits(kill_memory_mb=200, kill_threads=50, kill_descriptors=100, interval_s=OFTEN)
    system = run(sleeper(limits=limits), python("take_memory_once", "w", limits=limits))
    system.wait_until("w", lambda worker: worker.generation == 2, PATIENCE_S)
    assert system.status("sleeper").generation == 1


@pytest.mark.usefixtures("both_ways")
def test_a_worker_is_recycled_by_age_without_a_death(run: Run, rows: Rows) -> None:
    system = run(python("wait", "w", recycle=RecyclePolicy(after_s=0.5, jitter=0.0)))
    with system.events() as events:
        events.until(lambda event: isinstance(event, WorkerRecycled), PATIENCE_S)
        system.wait_until("w", lambda w: w.generation >= 2 and w.status is Status.HEALTHY, PATIENCE_S)
    assert rows.deaths("w") == []


def test_rl_10_the_watch_over_a_dead_incarnation_ends_with_it(run: Run) -> None:
    limits = ResourceLimits(kill_memory_mb=1, interval_s=0.01)
    system = run(sleeper("w", limits=limits))
    with system.events() as events:
        generations: set[int] = set()
        while len(generations) < 5:
            event = events.next(PATIENCE_S)
            if isinstance(event, ResourceViolated):
                assert event.generation not in generations, "one incarnation was condemned twice"
                generations.add(event.generation)
    assert generations == {1, 2, 3, 4, 5}
