"""Records that could not be written before an upgrade go over with the hand-over document."""

from __future__ import annotations

import pytest

from rekindle.actors.deaths.death import Action, Cause
from rekindle.actors.facts.records import DeathRecord, EventRecord, MetaSet, MirrorWiped, Record
from rekindle.actors.handover import FORMAT, Estate, HandOver, HandOverError, Inheritance
from rekindle.actors.handover.document import decode, encode
from rekindle.actors.supervision.handed_over_worker import HandedOverFleet
from rekindle.actors.supervisor.handed_over_actors import HandedOverActors
from rekindle.actors.system.actor_hand_over import inherited_memory, inherited_records, leave_memory

DEATH = DeathRecord(
    component_id="w",
    generation=3,
    died_at_wall_ms=1,
    cause=Cause.EXITED,
    exit_code=7,
    signal=None,
    uptime_ms=5,
    job=None,
    action=Action.RESTART,
    reason="Restart #3",
)
EVENT = EventRecord(id=41, at_wall_ms=1, type="worker_died", component_id="w", payload="{}")


def inherited(estate: Estate) -> Inheritance:
    document = HandOver(format=FORMAT, version="1", number=1, at=0.0, back=(), parts=estate.parts)
    return Inheritance(decode(encode(document)))


def test_they_are_the_same_afterwards_and_events_keep_their_numbers() -> None:
    estate = Estate()
    memory = HandedOverActors(fleet=HandedOverFleet(workers={}), health={}, processes={})
    written: tuple[Record, ...] = (MetaSet("a", "b"), DEATH, EVENT)
    leave_memory(estate, memory, (*written, MirrorWiped()))
    inheritance = inherited(estate)
    assert inherited_records(inheritance) == written
    left = inherited_memory(inheritance)
    assert left is not None
    assert left.last_event_id == 41


def test_a_kind_of_record_that_this_version_does_not_know_is_refused() -> None:
    estate = Estate()
    estate.leave("records", [{"kind": "Unheard", "record": {}}])
    with pytest.raises(HandOverError, match="Unheard"):
        inherited_records(inherited(estate))
