"""Registering, unregistering and resetting a worker at the HealthMonitor."""

from __future__ import annotations

from math import inf

import pytest
from tests.virtual.conftest import SystemFactory
from tests.virtual.health.test_health import DEAD, FAILED, HEALTHY, PENDING, SILENT, UNHEALTHY, observed, say
from tests.virtual.simulated_system import W, lives, uptimes, worker

from rekindle.actors.deaths.death import Exit
from rekindle.actors.facts.frames import Frame
from rekindle.actors.messages import (
    ActorReplaced,
    ResetWorker,
    StatusChanged,
)
from rekindle.actors.messages.internal.to_monitor import (
    ChannelClosed,
    FrameReceived,
    MarkFailed,
    Unregister,
)
from rekindle.actors.messages.internal.to_proxy import ProcessExited
from rekindle.actors.simulation import Behaviour, dies_after


def test_hm_21_marking_an_unknown_worker_failed_is_not_an_error(new_system: SystemFactory) -> None:
    system = new_system(observed()).start()
    system.actors.monitor.tell(MarkFailed("absent"))
    system.run(100)
    assert system.events(ActorReplaced) == []
    assert system.changes() == [(0, HEALTHY)]


def test_hm_22_a_registration_of_a_failed_worker_is_refused_and_its_process_killed(
    new_system: SystemFactory,
) -> None:
    system = new_system()
    system.actors.monitor.tell(MarkFailed(W))
    system.start()
    system.run(60)
    assert system.starts() == [0]
    assert not system.processes.alive(W)
    assert system.changes() == []
    assert system.status().shown == "stopped"


def test_hm_23_after_a_reset_the_worker_is_pending_when_it_starts_again(new_system: SystemFactory) -> None:
    script = lives(dies_after(1), then=Behaviour(healthy_after=None))
    spec = worker(restart={"give_up_exit_codes": (1,)})
    system = new_system(spec, scripts=script).start()
    system.run(10)
    assert system.status().status is FAILED
    system.tell(ResetWorker(W))
    assert system.status().status is None
    system.start(W)
    assert system.status().status is PENDING
    system.run(1)
    assert system.memory.health[W].status == "pending"


def test_hm_24_what_is_unregistered_is_silently_forgotten(new_system: SystemFactory) -> None:
    system = new_system(observed(), scripts=SILENT).start()
    say(system, (1, "healthy"))
    for message in (Unregister(W), Unregister("absent"), FrameReceived(W, 1, Frame(status="unhealthy"))):
        system.actors.monitor.tell(message)
    system.run(300)
    assert system.changes() == [(1, HEALTHY)]


def test_hm_25_the_next_incarnation_has_a_whole_startup_and_the_same_policy(
    new_system: SystemFactory,
) -> None:
    script = lives(Behaviour(healthy_after=55, heartbeat=inf), Behaviour(healthy_after=None))
    system = new_system(scripts=script).start()
    system.run(200)
    # Frame at 55, dead at 70, again at 71, and 60 s later dead for the lack of a first frame.
    assert system.changes()[:4] == [(55, HEALTHY), (60, UNHEALTHY), (70, DEAD), (131, DEAD)]
    assert system.starts()[:2] == [0, 71]
    assert [event.misses for _, event in system.events(StatusChanged)[:4]] == [0, 1, 3, 0]


@pytest.mark.parametrize(
    "late",
    [
        FrameReceived(W, 1, Frame(status="unhealthy")),
        ChannelClosed(W, 1),
        ProcessExited(W, 1, Exit(code=1)),
    ],
    ids=lambda late: type(late).__name__,
)
def test_hm_26_what_comes_late_of_an_older_generation_is_ignored(
    new_system: SystemFactory, late: object
) -> None:
    system = new_system(scripts=uptimes(3)).start()
    system.run(10)
    told = system.changes()
    system.actors.monitor.tell(late)
    system.run(60)
    assert system.changes() == told
    assert system.starts() == [0, 4]
