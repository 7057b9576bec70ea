"""The HealthMonitor raises in the middle of things: it is replaced in place, and no worker is affected."""

from __future__ import annotations

from math import inf

import pytest
from tests.virtual.conftest import SystemFactory
from tests.virtual.faults import Mistake, at
from tests.virtual.simulated_system import W, ids, lives, worker, workers

from rekindle.actors.facts.health_status import Status
from rekindle.actors.health_monitor import HealthMonitor
from rekindle.actors.messages import (
    PauseWorkers,
)
from rekindle.actors.messages.internal.to_monitor import (
    DeadlineReached,
    FrameReceived,
    MarkFailed,
    MirrorDue,
    Unregister,
)
from rekindle.actors.messages.internal.to_proxy import (
    ProcessExited,
    ProcessStarted,
)
from rekindle.actors.simulation import Behaviour, crashes_after, dies_after, runs
from rekindle.actors.spec.program import command
from rekindle.actors.spec.worker_spec import PauseMode


def test_a_monitor_that_raises_does_not_ask_for_a_second_first_frame(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The plugin preset gives 2 s to the first frame, and asks for no other one.
    Mistake(HealthMonitor, at(MirrorDue)).put_in(monkeypatch)
    system = new_system(worker(preset="plugin"), scripts=lives(Behaviour(heartbeat=inf))).start()
    system.run(60)
    assert system.changes() == [(0, Status.HEALTHY)]


def test_a_monitor_that_raises_remembers_who_is_paused(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = new_system(worker(pause_mode=PauseMode.IDLE)).start()
    system.run(10)
    system.tell(PauseWorkers())
    system.processes.freeze(W)
    Mistake(HealthMonitor, at(Unregister)).put_in(monkeypatch)
    system.actors.monitor.tell(Unregister("absent"))
    system.run(100)
    assert system.deaths() == []


def test_a_monitor_that_raises_still_finds_who_hangs(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(HealthMonitor, at(DeadlineReached)).put_in(monkeypatch)
    system = new_system(scripts=lives(Behaviour(heartbeat=inf), then=runs())).start()
    system.run(60)
    assert system.changes()[:3] == [(0, Status.HEALTHY), (10, Status.UNHEALTHY), (20, Status.DEAD)]
    assert system.starts() == [0, 21]


def test_a_monitor_that_raises_again_and_again_still_finds_who_hangs(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    hanging, lively = ids(2)
    of_the_lively = at(FrameReceived, where=lambda message: message.component_id == lively)
    Mistake(HealthMonitor, of_the_lively, times=1000).put_in(monkeypatch)
    script = lives(Behaviour(heartbeat=inf), then=runs())
    system = new_system(*workers(2), scripts={hanging: script}).start()
    system.run(60)
    assert Status.DEAD in [new for _, new in system.changes(hanging)]
    assert len(system.starts(hanging)) == 2


def test_a_monitor_that_raises_at_every_check_does_nothing_else_only_once_a_second(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake = Mistake(HealthMonitor, at(DeadlineReached), times=1000).put_in(monkeypatch)
    system = new_system(*workers(2), scripts={ids(2)[0]: lives(Behaviour(heartbeat=inf))}).start()
    system.run(60)
    assert mistake.made <= 2 * 60
    assert system.status(ids(2)[1]).status is Status.HEALTHY


def test_a_monitor_that_raises_keeps_the_failed_failed(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = new_system(worker(restart={"max_lifetime": 1}), scripts=crashes_after(3)).start()
    system.run(20)
    Mistake(HealthMonitor, at(Unregister)).put_in(monkeypatch)
    system.actors.monitor.tell(Unregister("absent"))
    before = system.changes()
    system.run(60)
    assert system.changes() == before
    assert system.status().shown == "failed"


def test_the_exit_of_a_worker_is_known_although_the_monitor_raised_at_it(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(HealthMonitor, at(ProcessExited)).put_in(monkeypatch)
    script = lives(dies_after(3, exit=0), then=runs())
    system = new_system(worker(restart={"restart_on": "on_failure"}), scripts=script).start()
    system.run(60)
    assert system.starts() == [0]
    assert system.memory.deaths(W)[0].exit_code == 0


def test_a_plain_program_is_healthy_although_the_monitor_missed_its_start(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(HealthMonitor, at(ProcessStarted), times=2).put_in(monkeypatch)
    system = new_system(worker(run=command("app"))).start()
    system.run(300)
    assert system.changes() == [(1, Status.HEALTHY)]


def test_a_failure_is_published_although_the_monitor_missed_it(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(HealthMonitor, at(MarkFailed), times=2).put_in(monkeypatch)
    system = new_system(worker(restart={"give_up_exit_codes": (1,)}), scripts=crashes_after(3)).start()
    system.run(60)
    assert system.changes()[-1] == (3, Status.FAILED)


def test_a_stop_is_not_a_death_although_the_monitor_missed_it(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(HealthMonitor, at(Unregister), times=2).put_in(monkeypatch)
    system = new_system(scripts=lives(Behaviour(stops_after=4))).start()
    system.run(1)
    system.stop()
    assert system.changes() == [(0, Status.HEALTHY)]


def test_the_mirror_is_written_although_the_monitor_raised_at_it(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(HealthMonitor, at(MirrorDue), times=2).put_in(monkeypatch)
    system = new_system().start()
    system.run(10)
    assert system.memory.health[W].status == "healthy"
