"""The persistence actor, the store or the Broker raises: nothing is lost, and the listeners stay."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.virtual.conftest import SystemFactory
from tests.virtual.faults import Mistake, at
from tests.virtual.simulated_system import ids, uptimes, workers

from rekindle.actors.broker import Broker
from rekindle.actors.facts.health_status import Status
from rekindle.actors.facts.jobs import JobSettled
from rekindle.actors.facts.records import Record
from rekindle.actors.messages import (
    ActorReplaced,
    StatusChanged,
    StoreDegraded,
    StoreRecovered,
)
from rekindle.actors.messages.internal.to_broker import Publish
from rekindle.actors.messages.internal.to_persistence import (
    CommitBatch,
    Flush,
    Persist,
    RetryCommit,
)
from rekindle.actors.persistence_actor import PersistenceActor
from rekindle.actors.simulation import crashes_after
from rekindle.persistence import MemoryStore

healthy = at(StatusChanged, where=lambda message: message.new is Status.HEALTHY)


def test_the_broker_keeps_its_listeners(new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    publish_healthy = at(
        Publish, where=lambda message: any(healthy(getattr(each, "event", None)) for each in message.items)
    )
    Mistake(Broker, publish_healthy).put_in(monkeypatch)
    system = new_system(scripts=uptimes(3)).start()
    system.run(60)
    assert [event.actor for _, event in system.events(ActorReplaced)] == ["Broker"]
    assert [new for _, new in system.changes()] == [Status.HEALTHY, Status.DEAD, Status.HEALTHY]


def test_a_broker_that_always_raises_does_not_keep_itself_busy(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake = Mistake(Broker, lambda message: True, times=10_000).put_in(monkeypatch)
    system = new_system(scripts=uptimes(3)).start()
    system.run(60)
    assert system.starts() == [0, 4]
    assert mistake.made < 100


def test_a_persistence_actor_that_raises_loses_nothing(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mistake(PersistenceActor, at(Persist, CommitBatch, RetryCommit), times=1).put_in(monkeypatch)
    system = new_system(*workers(5), scripts=crashes_after(3)).start()
    system.run(600)
    assert [system.stored(id_).restart_count for id_ in ids(5)] == [5] * 5
    assert [len(system.memory.deaths(id_)) for id_ in ids(5)] == [6] * 5


class Careless(MemoryStore):
    """A store that raises an error of its own now and then, which is not an outage."""

    def __init__(self, *mistakes: int) -> None:
        super().__init__()
        self.mistakes = mistakes
        self.commits = 0

    def commit(self, records: Sequence[Record]) -> tuple[JobSettled, ...]:
        """Keep them, unless this is the turn for a mistake."""
        self.commits += 1
        if self.commits in self.mistakes:
            raise TypeError("a mistake in the store")
        return super().commit(records)


def test_a_mistake_in_the_store_loses_nothing(new_system: SystemFactory) -> None:
    system = new_system(*workers(3), scripts=crashes_after(3), store=Careless(2, 3, 5, 7, 8, 9, 12)).start()
    system.run(600)
    assert [system.stored(id_).restart_count for id_ in ids(3)] == [5] * 3
    assert system.report().unsaved == 0


def test_a_mistake_in_the_store_is_shown_as_unsaved(new_system: SystemFactory) -> None:
    system = new_system(scripts=uptimes(3), store=Careless(*range(3, 100))).start()
    system.run(10)
    assert system.report().unsaved == 3  # two starts, and the death between them
    assert system.events(StoreDegraded) != []
    assert system.starts() == [0, 5]


def test_a_persistence_actor_that_raises_with_nothing_to_write_writes_what_comes_later(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It took the store for degraded once, found nothing to write, and never wrote again.
    Mistake(PersistenceActor, at(Flush)).put_in(monkeypatch)
    system = new_system(scripts=uptimes(30)).start()
    system.run(10)
    system.actors.persistence.tell(Flush(system.listener))
    system.run(50)
    assert system.stored().restart_count == 1
    assert system.events(StoreRecovered) != []


def test_a_persistence_actor_that_raises_after_it_has_numbered_events_does_not_number_them_again(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message is handled once more after the exception; its events had numbers already."""
    real = PersistenceActor._commit_soon
    raised: list[int] = []

    def raise_once(actor: PersistenceActor) -> None:
        if actor._batch.events and not raised:
            raised.append(actor._batch.last_event_id)
            raise RuntimeError("raised by the test, after the numbering")
        real(actor)

    monkeypatch.setattr(PersistenceActor, "_commit_soon", raise_once)
    system = new_system(scripts=uptimes(3), event_linger_s=0.02).start()
    system.run(60)
    assert raised == [1]
    events = system.memory.events(limit=1000).events
    assert [event.id for event in events] == list(range(1, len(events) + 1))
    told = [(event.type, event.payload) for event in events if event.type != "actor_replaced"]
    assert len(told) == len(set(told))
