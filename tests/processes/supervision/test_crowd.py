"""Many workers at once: none is lost, and requests are answered meanwhile."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace

import pytest
from tests.processes.conftest import Rows, Run
from tests.processes.policies import QUICK, python, sleeper
from tests.processes.waiting import PATIENCE_S, Held, eventually

from rekindle.actors import Status, StatusChanged, System, UnknownWorkerError, WorkerSpec, WorkerStarted

CROWD = 60


def pids(system: System) -> dict[str, int]:
    """The pids of the healthy workers."""
    workers = system.report().workers
    return {w.component_id: w.pid for w in workers if w.pid is not None and w.status is Status.HEALTHY}


@pytest.fixture
def crowd(run: Run) -> System:
    system = run(*(sleeper(f"s:{n}", restart=replace(QUICK, jitter=1.0)) for n in range(CROWD)))
    assert eventually(lambda: len(pids(system)) == CROWD)
    return system


def test_f13_all_are_noticed_and_back_after_all_were_killed_at_once(crowd: System, rows: Rows) -> None:
    before = pids(crowd)
    slowest = 0.0
    with Held(before.values()) as held:
        for pid in before.values():
            os.kill(pid, signal.SIGKILL)

        def all_are_back() -> bool:
            nonlocal slowest
            began = time.monotonic()
            after = pids(crowd)
            slowest = max(slowest, time.monotonic() - began)
            return len(after) == CROWD and after.keys() == before.keys() and not set(after.values()) & old

        old = set(before.values())
        assert eventually(all_are_back)
        assert held.all_end()
    assert slowest < 10.0  # ten times the promise
    for id_ in before:
        assert rows.deaths(id_) == [(1, "signalled", None, 9, "restart")]
        assert rows.restart_count(id_) == 1


def test_f13_no_more_start_at_the_same_time_than_may(run: Run) -> None:
    specs: list[WorkerSpec] = [python("wait", f"p:{n}") for n in range(9)]
    system = run(*specs, max_concurrent_starts=3)
    assert eventually(lambda: len(pids(system)) == 9)
    with system.events() as events:
        for pid in pids(system).values():
            os.kill(pid, signal.SIGKILL)
        starting: set[str] = set()
        healthy: set[str] = set()
        most = 0
        while len(healthy) < 9:
            event = events.next(PATIENCE_S)
            if isinstance(event, WorkerStarted):
                starting.add(event.component_id)
                most = max(most, len(starting - healthy))
            elif isinstance(event, StatusChanged) and event.new is Status.HEALTHY:
                healthy.add(event.component_id)
    assert 1 < most <= 3  # one may be healthy before the third has reported


def test_a_hundred_commands_come_and_go_without_a_thread_each(run: Run) -> None:
    others = set(threading.enumerate())
    system = run(*(sleeper(f"s:{n}") for n in range(100)))
    assert eventually(lambda: len(pids(system)) == 100)
    ours = [each.name for each in {*threading.enumerate()} - others if each.name.startswith("rekindle-")]
    assert len(ours) == len(set(ours)) <= 8
    results = system.stop()
    assert len(results) == 100
    assert all(result.gone for result in results)


def test_workers_that_are_added_by_many_threads_at_once_are_all_known(run: Run) -> None:
    system = run()
    added = [sleeper(f"s:{n}") for n in range(16)]
    threads = [threading.Thread(target=system.add, args=(spec,)) for spec in added]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {system.spec(spec.id).id for spec in added} == {spec.id for spec in added}
    removers = [threading.Thread(target=system.remove, args=(spec.id,)) for spec in added[:8]]
    for thread in removers:
        thread.start()
    for thread in removers:
        thread.join()
    assert {worker.component_id for worker in system.report().workers} == {spec.id for spec in added[8:]}
    with pytest.raises(UnknownWorkerError, match=r"no worker is called 's:0'"):
        system.spec("s:0")
    with pytest.raises(UnknownWorkerError, match=r"'s:8x'; did you mean s:8"):
        system.pause("s:8x")
