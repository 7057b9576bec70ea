"""The persistence actor by itself: a restart goes first, then the death is published."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pykka
import pytest
from tests.contract.records import death

from rekindle.actors.errors import StoreUnavailableError
from rekindle.actors.facts.jobs import JobSettled
from rekindle.actors.facts.records import EventRecord, Record
from rekindle.actors.messages import Published, StoreDegraded, WorkerReset
from rekindle.actors.messages.internal.to_broker import Publish
from rekindle.actors.messages.internal.to_monitor import Attend
from rekindle.actors.messages.internal.to_persistence import Flush, Flushed, Persist
from rekindle.actors.messages.internal.to_supervisor import BatchCommitted
from rekindle.actors.persistence_actor import PersistenceActor
from rekindle.actors.simulation.simulation_runtime import SimulationRuntime
from rekindle.persistence import MemoryStore


def died(number: int) -> Persist:
    """A death with its event."""
    return Persist((death(number), WorkerReset("worker:tag:0")))


def published(number: int) -> str:
    """How the log shows an event that was handed to the Broker."""
    return f"published {number}"


class Desk:
    """A persistence actor with everything that it sends and does, in order."""

    def __init__(self) -> None:
        self.log: list[object] = []
        self.meanwhile: Callable[[], None] = lambda: None
        """What happens while the store writes."""
        self.runtime = SimulationRuntime()
        self.store = LoggedStore(self)
        self.persistence: pykka.ActorRef[PersistenceActor] = self.runtime.start(
            PersistenceActor, runtime=self.runtime, store=self.store
        )
        self.persistence.tell(Attend(self, self, self))

    def tell(self, message: object) -> None:
        """Note what the persistence actor sends, to any receiver."""
        if isinstance(message, Publish):
            events = [each for each in message.items if isinstance(each, Published)]
            self.log += [f"published {each.id}{'' if each.kept else ' from memory'}" for each in events]
        else:
            self.log.append(message)

    def settle(self) -> list[object]:
        """Let everything under way happen; what that was."""
        self.runtime.settle()
        return self.log


class LoggedStore(MemoryStore):
    """A store whose commits stand in the log."""

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self._desk = desk

    def commit(self, records: Sequence[Record]) -> tuple[JobSettled, ...]:
        self._desk.log.append("commit")
        settled = super().commit(records)
        self._desk.meanwhile()
        return settled


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_restart_happens_before_listeners_are_notified_of_the_death(desk: Desk) -> None:
    desk.persistence.tell(died(1))
    assert desk.settle() == ["commit", BatchCommitted((("worker:tag:0", 1),)), published(1)]


def test_endless_deaths_do_not_delay_their_notifications(desk: Desk) -> None:
    """There was no idle moment then, and it waited for eight commits of a slow store."""
    coming = iter(range(2, 6))

    def another() -> None:
        for number in coming:
            desk.persistence.tell(died(number))
            return

    desk.meanwhile = another
    desk.persistence.tell(died(1))
    steps = [step for step in desk.settle() if not isinstance(step, BatchCommitted)]
    assert steps == [step for number in range(1, 6) for step in ("commit", published(number))]


def test_a_persisted_death_is_confirmed_before_the_outage_that_follows(desk: Desk) -> None:
    """Confirmed after it, it was taken for the end of the outage, and the next event waited for the store."""

    def gone() -> None:
        desk.store.fault = StoreUnavailableError("database is locked")
        desk.persistence.tell(died(2))

    desk.meanwhile = gone
    desk.persistence.tell(died(1))
    log = desk.settle()
    assert log.index(published(1)) < log.index("published 2 from memory")
    assert not any(isinstance(step, StoreDegraded) for step in log[: log.index(published(1))])


def test_a_flush_publishes_everything(desk: Desk) -> None:
    desk.persistence.tell(died(1))
    desk.persistence.tell(Flush(desk))
    log = desk.settle()
    (flushed,) = (each for each in log if isinstance(each, Flushed))
    assert flushed.unsaved == 0
    assert log.index(published(1)) < log.index(flushed)


def test_an_event_that_is_sent_twice_as_one_object_is_published_twice(desk: Desk) -> None:
    """The second one was taken for the first, which comes again after an exception."""
    event = WorkerReset("worker:tag:0")
    desk.persistence.tell(event)
    desk.persistence.tell(event)
    assert [step for step in desk.settle() if step != "commit"] == [published(1), published(2)]


def test_what_the_former_program_could_not_write_is_written_first_and_not_published_again() -> None:
    runtime, store = SimulationRuntime(), MemoryStore()
    event = EventRecord(id=7, at_wall_ms=1, type="worker_died", component_id="worker:tag:0", payload="{}")
    persistence = runtime.start(
        PersistenceActor, runtime=runtime, store=store, last_id=7, waiting=(death(1), event)
    )
    heard: list[object] = []
    persistence.tell(Attend(_Ears(heard), _Ears(heard), _Ears(heard)))
    persistence.tell(died(2))
    runtime.settle()
    assert [record.generation for record in store.deaths()] == [2, 1]
    assert [record.id for record in store.events().events] == [7, 8]
    told = [item for each in heard if isinstance(each, Publish) for item in each.items]
    assert [each.id for each in told if isinstance(each, Published)] == [8]


class _Ears:
    """Notes what it is told."""

    def __init__(self, heard: list[object]) -> None:
        self._heard = heard

    def tell(self, message: object) -> None:
        self._heard.append(message)
