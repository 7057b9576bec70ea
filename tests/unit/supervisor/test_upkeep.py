"""What the upkeep of processes goes on with after an upgrade of the supervisor."""

from __future__ import annotations

from typing import Any, cast

import pytest
from tests.virtual.simulated_system import Listener, worker

from rekindle.actors import RecyclePolicy
from rekindle.actors.messages.internal.to_supervisor import RecycleDue
from rekindle.actors.simulation.simulation_runtime import SimulationRuntime
from rekindle.actors.supervision.handed_over_worker import CountedProcess
from rekindle.actors.supervision.worker import SupervisedWorker, Up
from rekindle.actors.supervisor.upkeep import Upkeep

ID = "worker:tag:0"


@pytest.mark.parametrize(("jobs_left", "due"), [(0, [1]), (1, [])])
def test_a_worker_that_waits_to_be_spared_after_its_last_job_is_still_due(
    jobs_left: int, due: list[int]
) -> None:
    """It was never recycled: the count had passed zero."""
    spec = worker(ID, recycle=RecyclePolicy(after_jobs=3, jitter=0))
    supervisor, nothing = Listener(lambda: 0.0), cast("Any", None)
    upkeep = Upkeep(
        SimulationRuntime(0),
        cast("Any", {ID: SupervisedWorker(spec, phase=Up(1, 0, pid=7))}),
        breakers=nothing,
        supervisor=supervisor,
        processes=nothing,
        persistence=nothing,
    )
    upkeep.process_started(ID, CountedProcess(generation=1, jobs_left=jobs_left))
    assert [each.generation for each in supervisor.messages if isinstance(each, RecycleDue)] == due
