"""A record that no store can write is set aside as evidence, and never blocks the records behind it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.contract.records import TAG, death, known

from rekindle.actors.errors import StoreUnavailableError
from rekindle.actors.facts.audit_entry import AuditEntry, AuditResult
from rekindle.actors.facts.records import EventRecord, HealthMirrored, MetaSet, StreakCleared
from rekindle.actors.messages import Published, RecordSetAside
from rekindle.actors.messages.internal.to_broker import Publish
from rekindle.actors.messages.internal.to_monitor import Attend
from rekindle.actors.messages.internal.to_persistence import Flush, Flushed, Persist
from rekindle.actors.persistence_actor import PersistenceActor
from rekindle.actors.ports import Store
from rekindle.actors.simulation.simulation_runtime import SimulationRuntime

ORDER = AuditEntry(
    at_wall_ms=1, gateway="control", uid=None, pid=None, claimed_user=None, action="reset", target="",
    detail="", result=AuditResult.DONE, reason="",
)  # fmt: skip

NOT_A_TEXT: Any = {"not": ["a text"]}

UNWRITABLE = {
    "not a record": NOT_A_TEXT,
    "a name that is not text": MetaSet(NOT_A_TEXT, "value"),
    "a worker that is not text": death(2, component_id=NOT_A_TEXT),
    "a row without what it needs": StreakCleared(NOT_A_TEXT, 1),
    "a job that is not JSON": HealthMirrored(
        component_id=NOT_A_TEXT,
        generation=1,
        status="healthy",
        pid=1,
        current_job=None,
        last_heartbeat_wall_ms=1,
    ),
    "a number beyond the column": EventRecord(
        id=NOT_A_TEXT, at_wall_ms=2**70, type="x", component_id=None, payload="{}"
    ),
}


class Desk:
    """A persistence actor on a store, and what it publishes."""

    def __init__(self, store: Store) -> None:
        self.events: list[object] = []
        self.unsaved: int | None = None
        self.runtime = SimulationRuntime()
        self.ref = self.runtime.start(PersistenceActor, runtime=self.runtime, store=store)
        self.ref.tell(Attend(self, self, self))

    def tell(self, message: object) -> None:
        """Take what the actor sends to the Supervisor, the Broker and the JobDesk."""
        if isinstance(message, Publish):
            self.events += [each.event for each in message.items if isinstance(each, Published)]
        if isinstance(message, Flushed):
            self.unsaved = message.unsaved

    def persist(self, *items: Any) -> None:
        """Have these items written, and wait for that."""
        self.ref.tell(Persist(items))
        self.ref.tell(Flush(self))
        self.runtime.settle()


@pytest.mark.parametrize("record", UNWRITABLE.values(), ids=UNWRITABLE.keys())
def test_a_record_that_cannot_be_written_does_not_block_the_others(store: Store, record: Any) -> None:
    desk = Desk(store)
    desk.persist(death(1), ORDER, record, death(3), MetaSet("name", "value"))
    assert desk.unsaved == 0
    assert known(store).restart_count == 2
    assert [each.generation for each in store.deaths(TAG)] == [3, 1]
    assert store.load().meta["name"] == "value"
    assert store.audit() == (ORDER,), "written once"
    desk.persist(death(4))
    assert known(store).restart_count == 3


def test_what_was_set_aside_is_evidence_in_the_event_log(store: Store) -> None:
    desk = Desk(store)
    desk.persist(MetaSet(NOT_A_TEXT, "value"), death(1))
    found = [each for each in desk.events if isinstance(each, RecordSetAside)]
    assert [(each.kind, "not" in each.content) for each in found] == [("MetaSet", True)]
    assert [each.type for each in store.events().events] == ["record_set_aside"]


def test_while_the_store_refuses_everything_nothing_is_set_aside(store: Store) -> None:
    class Away:
        def __init__(self) -> None:
            self.away = True

        def __getattr__(self, name: str) -> object:
            return getattr(store, name)

        def commit(self, records: Any) -> object:
            if self.away:
                raise RuntimeError("a mistake of ours")
            return store.commit(records)

    away: Any = Away()
    desk = Desk(away)
    desk.persist(death(1), death(2))
    assert (desk.unsaved, known(store).restart_count) == (2, 0)
    away.away = False
    desk.runtime.run_for(5)
    assert known(store).restart_count == 2
    assert not [each for each in desk.events if isinstance(each, RecordSetAside)]


def test_a_store_that_goes_away_while_the_record_is_sought_gets_everything_later(store: Store) -> None:
    class Shaky:
        def __init__(self) -> None:
            self.calls = 0

        def __getattr__(self, name: str) -> object:
            return getattr(store, name)

        def commit(self, records: Any) -> object:
            self.calls += 1
            if self.calls == 3:
                raise StoreUnavailableError("gone")
            return store.commit(records)

    shaky: Any = Shaky()
    desk = Desk(shaky)
    desk.persist(death(1), MetaSet(NOT_A_TEXT, "value"), death(2), death(3))
    desk.runtime.run_for(5)
    assert known(store).restart_count == 3
