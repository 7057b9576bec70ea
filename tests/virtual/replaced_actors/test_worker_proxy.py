"""A WorkerProxy raises in the middle of things: it is replaced in place, and its process is not lost."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import pytest
from tests.virtual.conftest import SystemFactory
from tests.virtual.faults import Mistake, at
from tests.virtual.simulated_system import W, lives, worker

from rekindle.actors.facts.health_status import Status
from rekindle.actors.messages import (
    PauseWorkers,
)
from rekindle.actors.messages.internal.to_proxy import (
    LadderElapsed,
    PauseProcess,
    ProcessExited,
    ProcessFound,
    StartProcess,
    StopProcess,
)
from rekindle.actors.ports import Control
from rekindle.actors.simulation import Behaviour, cannot_be_spawned, runs
from rekindle.actors.spec.worker_spec import PauseMode
from rekindle.actors.worker_proxy import WorkerProxy


def test_a_proxy_that_raises_on_the_stop_ladder_starts_the_ladder_again(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(WorkerProxy, at(LadderElapsed), times=2).put_in(monkeypatch)
    system = new_system(scripts=lives(Behaviour(ignores_request=True, ignores_term=True))).start()
    (stopped,) = system.stop(within=40)
    assert stopped.killed
    assert system.now <= 24


def test_a_proxy_that_raises_tells_an_idle_worker_again(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(WorkerProxy, at(PauseProcess), times=2).put_in(monkeypatch)
    system = new_system(worker(pause_mode=PauseMode.IDLE)).start()
    system.run(10)
    system.tell(PauseWorkers())
    system.run(10)
    assert set(system.processes.controls) == {(10, W, Control.PAUSE)}


def test_a_process_table_that_cannot_even_be_asked_to_spawn_is_a_death(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = new_system()
    spawn: Callable[[Any], None] = system.processes.spawn
    refusals = [OSError("out of everything")]

    def spawn_badly(request: Any) -> None:
        if refusals:
            raise refusals.pop()
        spawn(request)

    monkeypatch.setattr(system.processes, "spawn", spawn_badly)
    system.start().run(60)
    assert system.status().status is Status.HEALTHY
    assert system.status().restart_count == system.stored().restart_count == 1


def test_a_stop_that_waits_for_the_end_of_a_failed_worker_is_answered_although_the_end_was_missed(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(WorkerProxy, at(ProcessExited), times=2).put_in(monkeypatch)
    stubborn = Behaviour(heartbeat=inf, ignores_term=True)
    system = new_system(
        worker(restart={"max_lifetime": 1}), scripts=lives(cannot_be_spawned("no"), stubborn)
    ).start()
    system.run_to(16.5)  # given up at 16, killed at 18
    assert system.status().shown == "failed"
    (stopped,) = system.stop()
    assert stopped.gone
    assert system.now == 18


def test_a_stale_process_is_ended_although_the_proxy_missed_the_order(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(WorkerProxy, at(StopProcess), times=2).put_in(monkeypatch)
    system = new_system(scripts=lives(Behaviour(heartbeat=inf), then=runs())).start()
    system.run(60)
    assert (system.ends(), system.starts()) == ([15], [0, 16])


def test_an_answer_from_before_a_start_is_not_believed_after_a_second_mistake(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by hypothesis: `nothing runs`, asked before the start, outlived it and left an orphan."""
    Mistake(WorkerProxy, at(StartProcess)).put_in(monkeypatch)
    Mistake(WorkerProxy, at(ProcessFound)).put_in(monkeypatch)
    system = new_system(worker(restart={"min_delay_s": 0, "initial_delay_s": 0})).start()
    system.run(5)
    assert system.starts() == [0]
    assert system.deaths() == []
    assert system.status().status is Status.HEALTHY
    system.shut_down()
    assert not system.processes.alive(W)
