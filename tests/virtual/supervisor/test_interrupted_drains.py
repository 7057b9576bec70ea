"""A drain that an upgrade of the supervisor cut off."""

from __future__ import annotations

from typing import Any, cast

import pytest
from tests.virtual.simulated_system import Listener, worker

from rekindle.actors import DrainPolicy
from rekindle.actors.messages.internal.to_proxy import AdoptProcess
from rekindle.actors.rules.stop_ladder import BeingStopped
from rekindle.actors.simulation.simulation_runtime import SimulationRuntime
from rekindle.actors.spec.policies.stop_policy import Urgency
from rekindle.actors.spec.probe import CommandProbe
from rekindle.actors.worker_proxy import KnownProcess, WorkerProxy

ID = "worker:tag:0"
BY_COMMAND = DrainPolicy(command=CommandProbe(("deregister",)), within_s=60)
BY_FRAME = DrainPolicy(within_s=60)


class Adopting:
    """Processes that the former program left."""

    def __init__(self) -> None:
        self.drained: list[int] = []

    def adopt(self, _request: object) -> None:
        """It is watched."""

    def drain(self, _id: str, generation: int, _drain: DrainPolicy) -> None:
        self.drained.append(generation)


@pytest.mark.parametrize(
    ("drain", "draining", "again"), [(BY_COMMAND, True, [3]), (BY_COMMAND, False, []), (BY_FRAME, True, [])]
)
def test_the_command_of_a_drain_is_run_again_and_a_worker_that_was_told_is_not_told_twice(
    drain: DrainPolicy, draining: bool, again: list[int]
) -> None:
    """The worker waited for the whole time limit of its drain."""
    runtime, processes, other = SimulationRuntime(0), Adopting(), Listener(lambda: 0.0)
    state = BeingStopped(3, 7, Urgency.GRACEFUL, (), draining=draining)
    proxy = runtime.start(
        WorkerProxy,
        worker(ID, stop={"drain": drain}),
        runtime=runtime,
        processes=cast("Any", processes),
        supervisor=other,
        monitor=other,
        persistence=other,
        known=KnownProcess(ID, 3, state, step_due=1000.0),
    )
    proxy.tell(AdoptProcess())
    runtime.settle()
    assert processes.drained == again
