"""Every event is numbered, stored with its cause, and published once, in order."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from tests.virtual.conftest import SystemFactory
from tests.virtual.simulated_system import Listener, SimulatedSystem, W, ids, lives, uptimes, workers

from rekindle.actors import store_writer
from rekindle.actors.errors import StoreUnavailableError
from rekindle.actors.facts.jobs import JobSettled
from rekindle.actors.facts.records import DeathRecord, EventRecord, Record
from rekindle.actors.messages import (
    EventsLost,
    Published,
    Snapshot,
    StatusChanged,
    StoreDegraded,
    WorkerDied,
)
from rekindle.actors.messages.event_json import event_type
from rekindle.actors.messages.internal.to_broker import Subscribe
from rekindle.actors.messages.internal.to_persistence import Flush
from rekindle.actors.rules import waiting_records
from rekindle.actors.simulation import crashes_after, dies_after, runs
from rekindle.persistence import MemoryStore

LOCKED = StoreUnavailableError("database is locked")
SEEDS = pytest.mark.parametrize("seed", range(10))


class Journal(MemoryStore):
    """A store that notes what was committed together."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[tuple[Record, ...]] = []

    def commit(self, records: Sequence[Record]) -> tuple[JobSettled, ...]:
        settled = super().commit(records)
        self.batches.append(tuple(records))
        return settled


def follower(system: SimulatedSystem, *topics: str) -> Listener:
    """A listener that asks for numbered events."""
    listener = Listener(system.runtime.clock.monotonic)
    system.actors.broker.tell(Subscribe(listener, topics or ("event:*",)))
    system.runtime.settle()
    return listener


def told(listener: Listener) -> list[Published]:
    return [message for message in listener.messages if isinstance(message, Published)]


def kept(store: MemoryStore) -> list[EventRecord]:
    return list(store.events(limit=100_000).events)


def is_gapless(numbers: list[int], first: int = 1) -> bool:
    return numbers == list(range(first, first + len(numbers)))


@SEEDS
def test_published_events_are_the_stored_ones_under_numbers_without_a_gap(
    new_system: SystemFactory, seed: int
) -> None:
    system = new_system(*workers(5), scripts=crashes_after(3), seed=seed)
    listener = follower(system)
    system.start().run(600)
    assert [each.record for each in told(listener)] == kept(system.memory)
    assert is_gapless([each.id for each in kept(system.memory)])
    assert all(each.kept for each in told(listener))
    assert [each.event for each in told(listener)] == system.listener.messages


@SEEDS
def test_a_death_is_stored_in_one_transaction_with_its_events(new_system: SystemFactory, seed: int) -> None:
    store = Journal()
    new_system(*workers(3), scripts=crashes_after(3), store=store, seed=seed).start().run(600)
    with_deaths = [each for each in store.batches if any(isinstance(one, DeathRecord) for one in each)]
    assert with_deaths
    for written in with_deaths:
        deaths = {(each.component_id, each.generation) for each in written if isinstance(each, DeathRecord)}
        events = [each for each in written if isinstance(each, EventRecord)]
        for type_ in ("worker_died", "status_changed"):
            found = {(e.component_id, json.loads(e.payload)["generation"]) for e in events if e.type == type_}
            assert deaths <= found


def test_a_death_costs_one_commit_before_its_restart(new_system: SystemFactory) -> None:
    store = Journal()
    system = new_system(scripts=uptimes(3), store=store, event_linger_s=0.01).start()
    system.run_to(2)
    store.batches.clear()
    system.run_to(3.4)  # the mirror is written half a second after a change
    first, *others = store.batches
    assert sum(isinstance(each, DeathRecord) for each in first) == 1
    assert others == []


def test_an_event_that_comes_alone_waits_a_moment_for_a_record_to_go_with(new_system: SystemFactory) -> None:
    store = Journal()
    script = lives(dies_after(0.005), then=runs())
    system = new_system(scripts=script, store=store, event_linger_s=0.01).start()
    system.run(0.5)
    (written,) = [each for each in store.batches if any(isinstance(one, DeathRecord) for one in each)]
    types = [each.type for each in written if isinstance(each, EventRecord)]
    assert types[0] == "worker_started"
    assert types[-2:] == ["status_changed", "worker_died"]


def test_the_numbers_go_on_after_a_restart_of_the_application(new_system: SystemFactory) -> None:
    system = new_system(scripts=crashes_after(3)).start()
    system.run(20)
    before = len(kept(system.memory))
    system.restart_application(away_s=60)
    listener = follower(system)
    system.start().run(20)
    assert told(listener)[0].id == before + 1
    assert is_gapless([each.id for each in kept(system.memory)])


def test_an_event_has_the_time_of_the_wall_clock(new_system: SystemFactory) -> None:
    system = new_system(scripts=uptimes(3)).start()
    system.run(10)
    deaths = [each for each in kept(system.memory) if each.type == "worker_died"]
    assert [each.at_wall_ms for each in deaths] == [system.runtime.virtual_clock.wall_offset_ms + 3000]


# ── Without the store ────────────────────────────────────────────────────────────────────


@SEEDS
def test_in_an_outage_events_are_published_at_once_and_stored_later_with_the_same_numbers(
    new_system: SystemFactory, seed: int
) -> None:
    system = new_system(*workers(3), scripts=crashes_after(3), seed=seed)
    listener = follower(system)
    system.start().run_to(2)
    system.memory.fault = LOCKED
    system.run_to(60)
    assert next(at for at, event in system.events(WorkerDied) if event.component_id == W) == 3
    unsaved = [each for each in told(listener) if not each.kept]
    assert unsaved
    system.memory.fault = None
    system.run(60)
    assert [each.record for each in told(listener)] == kept(system.memory)
    assert is_gapless([each.id for each in kept(system.memory)])
    assert told(listener)[-1].kept


def test_an_event_published_just_before_an_outage_is_not_published_again_after_it(
    new_system: SystemFactory,
) -> None:
    system = new_system(scripts=uptimes(3))
    listener = follower(system)
    system.memory.fault = LOCKED
    system.start().run(100)
    system.memory.fault = None
    system.run(100)
    numbers = [each.id for each in told(listener)]
    assert is_gapless(numbers)
    assert len(system.events(StoreDegraded)) == 1


def test_events_that_outgrow_the_memory_in_an_outage_are_dropped_and_reported_as_dropped(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_records, "MOST_EVENTS", 20)
    system = new_system(*workers(3), scripts=crashes_after(3))
    listener = follower(system)
    system.memory.fault = LOCKED
    system.start().run(600)
    system.memory.fault = None
    system.run(60)
    lost = [event for _, event in system.events(EventsLost)]
    assert lost
    missing = {number for each in lost for number in range(each.first_id, each.last_id + 1)}
    assert len(missing) == sum(each.count for each in lost)
    numbers = [each.id for each in told(listener)]
    assert is_gapless(numbers)
    assert [each.id for each in kept(system.memory)] == [each for each in numbers if each not in missing]


def test_an_event_that_the_store_neither_accepts_nor_refuses_is_published_after_two_seconds(
    new_system: SystemFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = new_system(scripts=uptimes(3)).start()
    system.run_to(2)
    # As one that hangs in a commit.
    monkeypatch.setattr(store_writer.StoreWriter, "handle", lambda self, message: None)
    system.run_to(4.9)
    assert system.events(WorkerDied) == []
    system.run_to(5.1)
    assert [at for at, _ in system.events(WorkerDied)] == [5]


# ── At the end ───────────────────────────────────────────────────────────────────────────


def test_what_waits_for_a_record_is_written_when_the_application_ends(new_system: SystemFactory) -> None:
    system = new_system(event_linger_s=10.0).start()
    system.run(0.1)
    assert kept(system.memory) == []
    system.actors.persistence.tell(Flush(Listener(system.runtime.clock.monotonic)))
    system.runtime.settle()
    assert [each.type for each in kept(system.memory)] == ["worker_started", "status_changed"]
    assert [event_type(type(each)) for each in system.listener.messages] == [
        "worker_started",
        "status_changed",
    ]


def test_a_follower_first_receives_the_last_number_of_the_log_and_its_latest_events(
    new_system: SystemFactory,
) -> None:
    system = new_system(scripts=uptimes(3)).start()
    system.run(10)
    listener = follower(system, "event:worker_died:*")
    snapshot, *others = listener.messages
    assert others == []
    assert isinstance(snapshot, Snapshot)
    assert snapshot.last_id == len(kept(system.memory))
    assert [type(each.event) for each in snapshot.recent] == [WorkerDied]
    system.processes.kill(W)
    system.run(10)
    assert [type(each.event) for each in told(listener)] == [WorkerDied]


def test_ev_18_in_the_log_no_worker_is_dead_after_it_failed(new_system: SystemFactory) -> None:
    """EV-18, across an outage and a restart of the application."""
    system = new_system(*workers(3), scripts=crashes_after(3)).start()
    system.run_to(40)
    system.memory.fault = LOCKED
    system.run_to(80)
    system.memory.fault = None
    system.run_to(200)
    system.restart_application()
    system.start().run(100)
    for id_ in ids(3):
        changes = [
            json.loads(each.payload)["new"]
            for each in kept(system.memory)
            if each.type == event_type(StatusChanged) and each.component_id == id_
        ]
        assert changes[-2:] == ["dead", "failed"]
        assert changes.count("failed") == 1
