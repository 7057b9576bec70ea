"""Pauses that make no sense, and pauses whose worker is changed meanwhile."""

from __future__ import annotations

import pytest
from tests.virtual.conftest import SystemFactory
from tests.virtual.simulated_system import W, worker

from rekindle.actors import Status
from rekindle.actors.messages import ActorReplaced, ChangeWorkers, PauseWorkers, Refused, ResumeWorkers
from rekindle.actors.ports import Control


@pytest.mark.parametrize("for_s", [0.0, -1.0, 1e12, float("inf"), float("nan")])
def test_a_pause_of_zero_or_infinite_time_is_refused_with_a_sentence(
    new_system: SystemFactory, for_s: float
) -> None:
    system = new_system().start()
    answer = system.ask(lambda reply: PauseWorkers(None, reply, for_s=for_s))
    assert isinstance(answer, Refused)
    assert "at most 1e+09 seconds" in answer.reason
    system.run(10)
    assert system.status().status is Status.HEALTHY
    assert system.events(ActorReplaced) == []


def test_an_idle_worker_whose_pause_mode_changes_meanwhile_goes_on_when_it_is_resumed(
    new_system: SystemFactory,
) -> None:
    system = new_system(worker(pause_mode="idle")).start()
    system.run(5)
    system.tell(PauseWorkers())
    system.tell(ChangeWorkers((worker(pause_mode="stop"),)))
    system.tell(ResumeWorkers())
    system.run(5)
    assert system.processes.controls == [(5, W, Control.PAUSE), (5, W, Control.RESUME)]
