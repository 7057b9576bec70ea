"""What those who listen hear of the queues, in virtual time."""

from __future__ import annotations

from typing import Any

from tests.virtual.bench import Listener, W, worker
from tests.virtual.conftest import Benches

from rekindle.actors.broker_messages import Subscribe
from rekindle.actors.errors import StoreUnavailableError
from rekindle.actors.jobs import NewJob
from rekindle.actors.messages import Snapshot, StateChanged
from rekindle.actors.states import QueueState

TAG: dict[str, Any] = {"jobs": {"queues": ("tag",)}}


def listener(system: Any, *topics: str) -> Listener:
    """Somebody who listens to these topics."""
    heard = Listener(system.runtime.clock.monotonic)
    system.actors.broker.tell(Subscribe(heard, topics))
    system.runtime.settle()
    return heard


def numbers(heard: Listener) -> list[tuple[str, int, int, int]]:
    """(topic, pending, running, completed) of every state that was told."""
    told = [each for each in heard.messages if isinstance(each, StateChanged)]
    return [
        (each.topic, each.state.pending, each.state.running, each.state.completed)
        for each in told
        if isinstance(each.state, QueueState)
    ]


def test_a_queue_is_told_of_when_it_has_changed_and_not_otherwise(bench: Benches) -> None:
    """EV-10: the queue itself, and all queues together."""
    system = bench(worker(**TAG)).start()
    system.run(1.0)
    heard = listener(system, "queue:tag:status", "queue:status")
    system.memory.jobs.add("tag", [NewJob(payload="1")])
    system.run(2.0)
    claim = system.memory.jobs.claim("tag", W, 1, "")
    assert claim is not None
    system.memory.jobs.finish(claim)
    system.run(2.0)
    assert numbers(heard) == [
        ("queue:tag:status", 1, 0, 0), ("queue:status", 1, 0, 0),
        ("queue:tag:status", 0, 0, 1), ("queue:status", 0, 0, 1),
    ]  # fmt: skip


def test_whoever_comes_later_is_shown_the_queues_first(bench: Benches) -> None:
    system = bench(worker(**TAG)).start()
    system.memory.jobs.add("tag", [NewJob(payload="1")] * 3)
    system.run(1.0)
    snapshot = listener(system, "queue:*:status").messages[0]
    assert isinstance(snapshot, Snapshot)
    (state,) = snapshot.states
    assert isinstance(state.state, QueueState)
    assert (state.type, state.state.queue_type, state.state.pending) == ("queue_update", "tag", 3)


def test_without_a_queue_nobody_looks(bench: Benches) -> None:
    system = bench(worker()).start()
    system.memory.jobs.add("tag", [NewJob(payload="1")])
    system.run(5.0)
    assert numbers(listener(system, "queue:*:status")) == []


def test_a_store_that_is_away_costs_a_look_and_no_more(bench: Benches, logs: list[str]) -> None:
    system = bench(worker(**TAG)).start()
    system.run(1.0)
    real, system.memory.jobs.stats = system.memory.jobs.stats, _away  # type: ignore[method-assign]
    system.run(5.0)
    assert sum("the queues cannot be looked at" in line for line in logs) == 1
    system.memory.jobs.stats = real  # type: ignore[method-assign]
    heard = listener(system, "queue:tag:status")
    system.memory.jobs.add("tag", [NewJob(payload="1")])
    system.run(2.0)
    assert numbers(heard) == [("queue:tag:status", 1, 0, 0)]


def _away() -> Any:
    raise StoreUnavailableError("gone")
