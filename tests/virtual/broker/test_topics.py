"""EV-04 to EV-08: subscribers to topics get a snapshot, then what changes."""

from __future__ import annotations

from typing import Any

from tests.virtual.conftest import SystemFactory
from tests.virtual.simulated_system import Listener, SimulatedSystem, W, ids, lives, uptimes, worker, workers

from rekindle.actors.errors import StoreUnavailableError
from rekindle.actors.facts.frames import Frame
from rekindle.actors.facts.health_status import ShownStatus, Status
from rekindle.actors.facts.topic_states import SystemHealthState, WorkerState
from rekindle.actors.messages import RemoveWorker, Snapshot, StateChanged
from rekindle.actors.messages.internal.to_broker import Subscribe, Unsubscribe
from rekindle.actors.messages.internal.to_monitor import FrameReceived
from rekindle.actors.messages.topics import ALL_STATES, worker_topic
from rekindle.actors.simulation import Behaviour, crashes_after


def watcher(system: SimulatedSystem, *topics: str) -> Listener:
    listener = Listener(system.runtime.clock.monotonic)
    system.actors.broker.tell(Subscribe(listener, topics or ALL_STATES))
    system.runtime.settle()
    return listener


def words(listener: Listener, topic: str = worker_topic(W)) -> list[Any]:
    """The statuses that were published after the snapshot."""
    told = [each for each in listener.messages if isinstance(each, StateChanged) and each.topic == topic]
    return [each.state.status if isinstance(each.state, WorkerState) else each.state for each in told]


def test_ev_04_a_snapshot_comes_first_and_contains_the_workers(new_system: SystemFactory) -> None:
    """EV-04."""
    system = new_system(*workers(2))
    listener = watcher(system, "worker:*:status")
    (snapshot,) = listener.messages
    assert isinstance(snapshot, Snapshot)
    states = [each.state for each in snapshot.states]
    assert [each.component for each in states if isinstance(each, WorkerState)] == list(ids(2))
    assert {each.status for each in states if isinstance(each, WorkerState)} == {"stopped"}
    system.start().run(1)
    assert words(listener) == ["starting", "healthy"]


def test_ev_05_a_change_has_the_whole_state_and_the_event_that_it_follows_from(
    new_system: SystemFactory,
) -> None:
    """EV-05: the envelope itself is the gateway's."""
    system = new_system(scripts=lives(Behaviour(job=42))).start()
    system.run(1)
    listener = watcher(system, "worker:tag:0:status")
    (snapshot,) = listener.messages
    (told,) = snapshot.states
    assert (told.topic, told.type, type(told.at_wall_ms)) == ("worker:tag:0:status", "worker_update", int)
    pid = system.status().pid
    assert told.state == WorkerState(
        component=W,
        id=0,
        queue_type="tag",
        status=ShownStatus.HEALTHY,
        pid=pid,
        current_job=42,
        health=Status.HEALTHY,
    )


def test_a_worker_that_is_unhealthy_or_recovering_is_shown_as_healthy_with_its_exact_health(
    new_system: SystemFactory,
) -> None:
    system = new_system().start()
    system.run(1)
    listener = watcher(system, "worker:tag:0:status")
    for frame in (Frame("unhealthy"), Frame("recovering", recover_for_s=5), Frame("healthy")):
        system.actors.monitor.tell(FrameReceived(W, 1, frame))
        system.run(0)
    told = [each.state for each in listener.messages if isinstance(each, StateChanged)]
    assert [(each.status, each.health) for each in told if isinstance(each, WorkerState)] == [
        (ShownStatus.HEALTHY, Status.UNHEALTHY),
        (ShownStatus.HEALTHY, Status.RECOVERING),
        (ShownStatus.HEALTHY, Status.HEALTHY),
    ]


def test_the_health_of_the_system_has_the_time_of_its_start(new_system: SystemFactory) -> None:
    system = new_system().start()
    system.run(5)
    (snapshot,) = watcher(system, "system:health").messages
    (told,) = snapshot.states
    assert 0 <= system.runtime.clock.wall_ms() - told.at_wall_ms <= 6_000


def test_ev_06_a_state_that_is_reported_twice_is_published_once(new_system: SystemFactory) -> None:
    """EV-06: frames come every second, and say the same."""
    system = new_system()
    listener = watcher(system)
    system.start().run(60)
    assert words(listener) == ["starting", "healthy"]


def test_ev_08_an_unsubscribed_listener_receives_nothing_more_and_an_ended_one_is_removed(
    new_system: SystemFactory,
) -> None:
    """EV-08."""
    system = new_system(scripts=uptimes(3)).start()
    listener = watcher(system, "worker:*:status")
    system.actors.broker.tell(Unsubscribe(listener))
    system.run(60)
    assert len(listener.messages) == 1


def test_a_death_and_a_failure_are_seen_in_the_workers_and_in_the_systems_state(
    new_system: SystemFactory,
) -> None:
    system = new_system(worker(restart={"max_lifetime": 1}), scripts=crashes_after(3))
    listener = watcher(system)
    system.start().run(60)
    assert words(listener) == ["starting", "healthy", "crashed", "starting", "healthy", "crashed", "failed"]
    (health,) = words(listener, "system:health")
    assert isinstance(health, SystemHealthState)
    assert health.status == "degraded"
    assert health.errors[0].startswith(f"{W} was given up: ")


def test_an_outage_of_the_store_is_seen_in_the_systems_state(new_system: SystemFactory) -> None:
    system = new_system(scripts=uptimes(3))
    listener = watcher(system, "system:health")
    system.start().run_to(2)
    system.memory.fault = StoreUnavailableError("database is locked")
    system.run_to(10)
    system.memory.fault = None
    system.run_to(60)
    assert words(listener, "system:health") == [
        SystemHealthState("degraded", ("persistence is degraded: database is locked",)),
        SystemHealthState(),
    ]


def test_a_removed_worker_no_longer_has_a_state(new_system: SystemFactory) -> None:
    system = new_system(*workers(2)).start()
    listener = watcher(system)
    system.tell(RemoveWorker(W))
    system.run(20)
    assert words(listener)[-1] is None
    later = watcher(system, "worker:*:status")
    assert [each.topic for each in later.messages[0].states] == [worker_topic(ids(2)[1])]
