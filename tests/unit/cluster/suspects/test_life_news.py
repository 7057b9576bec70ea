"""What the events of a node's journal say of the processes of its workers."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from rekindle.actors.cluster.cluster_messages import StoreAway
from rekindle.actors.cluster.courier_messages import JournalKept, ShipDue, ShipJournal
from rekindle.actors.cluster.facts.node_lives import Fault, NodeLife
from rekindle.actors.cluster.history_courier import PAGE, HistoryCourier
from rekindle.actors.cluster.rules.suspects.life_news import LifeBook, read
from rekindle.actors.deaths.death import Action, Cause, Death, Exit
from rekindle.actors.deaths.findings import Finding
from rekindle.actors.facts.node_figures import NodeFigures
from rekindle.actors.facts.records import EventPage, EventRecord
from rekindle.actors.messages import (
    Event,
    ShipCaughtUp,
    ShipLagged,
    WorkerDied,
    WorkerPlaced,
    WorkerStarted,
    WorkerStopped,
    WorkerStopping,
)
from rekindle.actors.messages.event_json import numbered
from rekindle.actors.simulation.simulation_runtime import SimulationRuntime

W = "worker:web:0"
PLACED = WorkerPlaced(W, "k1", 7)
STARTED = WorkerStarted(W, 1, 100)


def journal(*events: Event, since: int = 1) -> tuple[EventRecord, ...]:
    """Events of a journal, a second apart."""
    return tuple(numbered(number, number * 1000, event) for number, event in enumerate(events, since))


def died(generation: int = 1, *, action: Action = Action.RESTART, **others: Any) -> WorkerDied:
    finding = others.pop("finding", None)
    death = Death(**{"component_id": W, "generation": generation, "cause": Cause.EXITED, **others})
    return WorkerDied(death, action, "it died", 0.0, 1, finding=finding)


def the_life(*events: Event) -> NodeLife:
    """What these events say of the one process."""
    (life,) = read(LifeBook("n"), journal(*events))[1]
    return life


def test_a_death_is_shipped_with_its_epoch_its_cause_and_whose_fault_it_was() -> None:
    life = the_life(PLACED, STARTED, died(exit=Exit(code=3)))
    assert life == NodeLife(
        node_id="n",
        component_id=W,
        generation=1,
        epoch=7,
        began_ms=2000,
        ended_ms=3000,
        cause="exited",
        fault=Fault.WORKER,
        counted=True,
        died=True,
    )


def test_a_process_that_an_operator_stops_has_not_died() -> None:
    life = the_life(PLACED, STARTED, WorkerStopping(W, 1, "moved"), WorkerStopped(W, 1, Exit(code=0), None))
    assert (life.ended_ms, life.cause, life.fault, life.died) == (4000, "stopped", Fault.OPERATOR, False)


def test_a_fenced_process_was_ended_by_its_node() -> None:
    life = the_life(STARTED, WorkerStopping(W, 1, "fenced"), WorkerStopped(W, 1, Exit(signal=9), 9))
    assert (life.fault, life.died) == (Fault.NODE, False)


def test_a_process_that_ended_with_its_supervisor_is_no_evidence() -> None:
    life = the_life(STARTED, died(cause=Cause.SUPERVISOR_LOST))
    assert (life.fault, life.died) == (Fault.NODE, False)


def test_a_good_end_is_no_evidence() -> None:
    assert not the_life(STARTED, died(exit=Exit(code=0))).died


def test_a_start_that_fails_for_want_of_space_and_a_kill_for_want_of_memory_are_hard_evidence() -> None:
    failed = died(cause=Cause.SPAWN_FAILED, detail="No space left on device", action=Action.MARK_FAILED)
    assert (the_life(failed).is_hard, the_life(failed).counted) == (True, False)
    killed = died(cause=Cause.SIGNALLED, exit=Exit(signal=9), finding=Finding.OUT_OF_MEMORY)
    assert the_life(STARTED, killed).is_hard
    assert not the_life(died(cause=Cause.SPAWN_FAILED, detail="No such file or directory")).is_hard


# ── the courier ──────────────────────────────────────────────────────────────────────────


class Journal:
    """The events of a node."""

    def __init__(self, *events: Event) -> None:
        self.records = journal(*events)

    def events(self, after_id: int = 0, limit: int = 100) -> EventPage:
        found = tuple(each for each in self.records if each.id > after_id)[:limit]
        return EventPage(found, 1, len(self.records))

    def events_of(self, component_id: str, *, limit: int) -> tuple[EventRecord, ...]:
        return tuple(reversed([each for each in self.records if each.component_id == component_id]))[:limit]


class Database:
    """Keeps what is shipped, while it is up; the answer to the first page may be lost."""

    def __init__(self, *, loses_the_first_answer: bool = False) -> None:
        self.events: dict[int, EventRecord] = {}
        self.lives: dict[int, NodeLife] = {}
        self.order: list[int] = []
        self.is_up = True
        self._loses = loses_the_first_answer

    def shipped_up_to(self, node_id: str, receiver: Any) -> None:
        up_to = JournalKept(max(self.events, default=0))
        receiver.tell(up_to if self.is_up else StoreAway(request=node_id, reason="away"))

    def ship(self, request: ShipJournal, receiver: Any) -> None:
        if not self.is_up:
            receiver.tell(StoreAway(request=request, reason="away"))
            return
        self.order += [each.id for each in request.records if each.id not in self.events]
        self.events |= {each.id: each for each in request.records}
        self.lives |= {each.generation: each for each in request.lives}
        away, self._loses = self._loses, False
        receiver.tell(
            StoreAway(request=request, reason="no answer") if away else JournalKept(request.records[-1].id)
        )


def shipped(events: Journal, database: Database, *, outage_s: float = 0.0, **more: Any) -> SimulationRuntime:
    runtime = SimulationRuntime()
    ref = runtime.start(
        HistoryCourier,
        "n",
        runtime=runtime,
        store=database,
        journal=events,
        epochs={},
        keep_days=30.0,
        **more,
    )
    database.is_up = not outage_s
    ref.tell(ShipDue())
    runtime.settle()
    runtime.run_for(outage_s)
    database.is_up = True
    runtime.run_for(1.0)
    return runtime


def many(count: int) -> Journal:
    lives = [(WorkerStarted(W, number, 100), died(number)) for number in range(1, count + 1)]
    return Journal(PLACED, *(event for life in lives for event in life))


def test_the_whole_journal_is_shipped_in_order() -> None:
    events, database = many(PAGE), Database()
    shipped(events, database)
    assert database.order == [each.id for each in events.records]
    assert len(database.lives) == PAGE


def test_an_answer_that_is_lost_doubles_and_loses_nothing() -> None:
    events, database = many(PAGE), Database(loses_the_first_answer=True)
    shipped(events, database)
    assert database.order == [each.id for each in events.records]


def test_what_happens_while_the_database_is_away_is_shipped_when_it_is_back() -> None:
    events, database = many(3), Database()
    shipped(events, database, outage_s=60.0)
    assert database.order == [each.id for each in events.records]


def test_a_courier_that_begins_in_the_middle_of_a_life_finds_its_epoch_in_the_journal() -> None:
    events, database = many(2), Database()
    database.events = {each.id: each for each in events.records[:2]}
    shipped(events, database)
    assert {generation: life.epoch for generation, life in database.lives.items()} == {1: 7, 2: 7}
    assert replace(database.lives[1], began_ms=0).ended_ms == 3000


def test_a_history_that_the_database_lacks_for_long_is_told_once_and_when_it_has_all() -> None:
    said: list[Event] = []
    figures = NodeFigures()
    shipped(many(3), Database(), outage_s=60.0, node="k1", announce=said.append, figures=figures)
    (late, over) = said
    assert isinstance(late, ShipLagged)
    assert late.node == "k1"
    assert late.for_s >= 30.0
    assert over == ShipCaughtUp("k1")
    assert figures.unshipped_since_ms is None


def test_a_short_outage_of_the_database_is_no_late_history() -> None:
    said: list[Event] = []
    shipped(many(3), Database(), outage_s=10.0, announce=said.append)
    assert said == []
