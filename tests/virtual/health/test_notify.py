"""What a worker says over its notify socket, in virtual time."""

from __future__ import annotations

from tests.virtual.conftest import SystemFactory
from tests.virtual.simulated_system import SimulatedSystem, W, lives, worker

from rekindle.actors.deaths.death import Cause
from rekindle.actors.facts.health_status import ShownStatus
from rekindle.actors.facts.notify_datagram import NotifyDatagram
from rekindle.actors.messages.internal.to_monitor import NoticeReceived
from rekindle.actors.simulation import Behaviour, hangs, runs
from rekindle.actors.spec.policies.ready_policy import ReadyPolicy
from rekindle.actors.spec.program import command

PLAIN = command("./app")
NOTIFIES = ReadyPolicy(notify=True)


def says(system: SimulatedSystem, notice: NotifyDatagram, generation: int = 1) -> None:
    """The worker sends a datagram now."""
    system.actors.monitor.tell(NoticeReceived(W, generation, notice))
    system.run(0)


def silent(new_system: SystemFactory, ready: ReadyPolicy = NOTIFIES, **health: object) -> SimulatedSystem:
    """A system whose worker never becomes ready by itself."""
    spec = worker(run=PLAIN, ready=ready, restart={"enabled": False}, health=health)
    return new_system(spec, scripts=lives(Behaviour(healthy_after=None))).start()


def test_ready_makes_it_healthy_and_its_words_are_shown(new_system: SystemFactory) -> None:
    system = silent(new_system)
    system.run_to(3)
    says(system, NotifyDatagram(status="loading"))
    assert system.status().not_ready == ("READY=1 to its NOTIFY_SOCKET: loading",)
    says(system, NotifyDatagram(is_ready=True, status="serving"))
    assert (system.status().shown, system.status().said) == (ShownStatus.HEALTHY, "serving")


def test_a_worker_may_ask_for_more_time_to_start(new_system: SystemFactory) -> None:
    system = silent(new_system, startup_timeout_s=10)
    system.run_to(8)
    says(system, NotifyDatagram(extend_s=20))
    system.run_to(27)
    says(system, NotifyDatagram(extend_s=0.5))
    system.run_to(40)
    assert [(event.death.cause, event.death.uptime_ms) for event in system.deaths()] == [
        (Cause.STARTUP_TIMEOUT, 28_000)
    ]


def test_keep_alives_keep_it_alive_and_a_hang_ends_it(new_system: SystemFactory) -> None:
    spec = worker(run=PLAIN, ready=ReadyPolicy(notify=True, watchdog_s=10))
    system = new_system(spec, scripts=lives(hangs(after_s=61), then=runs())).start()
    system.run_to(200)
    (death,) = [event.death for event in system.deaths()]
    assert (death.cause, death.uptime_ms) == (Cause.HEARTBEAT_LOST, 70_000)
    assert "no WATCHDOG=1 for 10 s (limit 10 s)" in death.detail
    assert system.status().shown is ShownStatus.HEALTHY


def test_a_worker_that_triggers_its_watchdog_is_ended_with_its_words(new_system: SystemFactory) -> None:
    system = silent(new_system)
    says(system, NotifyDatagram(is_ready=True))
    says(system, NotifyDatagram(gives_up=True, status="pool is empty"))
    system.run(5)
    (death,) = [event.death for event in system.deaths()]
    assert (death.cause, death.detail) == (Cause.UNHEALTHY, "pool is empty")


def test_a_worker_that_says_that_it_stops_and_hangs_is_ended(new_system: SystemFactory) -> None:
    system = silent(new_system, ReadyPolicy(notify=True, watchdog_s=3))
    says(system, NotifyDatagram(is_ready=True))
    says(system, NotifyDatagram(is_stopping=True))
    system.run_to(10)
    assert system.deaths() == []
    system.run_to(100)
    (death,) = [event.death for event in system.deaths()]
    assert death.cause is Cause.NO_PROGRESS
    assert "STOPPING=1" in death.detail


def test_a_datagram_of_an_earlier_process_is_ignored(new_system: SystemFactory) -> None:
    system = silent(new_system)
    says(system, NotifyDatagram(is_ready=True), generation=0)
    assert system.status().shown is ShownStatus.STARTING
