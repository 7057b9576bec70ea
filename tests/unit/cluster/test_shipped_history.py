"""The past of a worker on several nodes, as one history and one timeline."""

from __future__ import annotations

import msgspec

from rekindle.actors.cluster.facts.shipped_events import ShippedEvent, ShippedPast
from rekindle.actors.cluster.views.shipped_history import deaths_of, newest, on_node, timeline_of_all
from rekindle.actors.deaths.death import Cause, Death, Exit
from rekindle.actors.facts.records import EventRecord, Lives
from rekindle.actors.messages import Event, WorkerDied, WorkerStarted
from rekindle.actors.messages.event_json import numbered
from rekindle.actors.views.timeline import TimelineSources, timeline

W = "worker:web:0"
NAMES = {"a": "k1", "b": "k2"}


def died(generation: int = 1, uptime_ms: int = 4_000) -> WorkerDied:
    death = Death(
        component_id=W, generation=generation, cause=Cause.EXITED, exit=Exit(code=3), uptime_ms=uptime_ms
    )
    return WorkerDied(
        death=death, action="restart", reason="Restart #1 with 1s backoff", delay_s=1.0, restart_count=1
    )


def sent(node_id: str, number: int, at_ms: int, event: Event) -> ShippedEvent:
    return ShippedEvent(node_id, numbered(number, at_ms, event))


def test_a_death_that_a_node_has_sent_is_the_death_that_it_recorded() -> None:
    (found,) = deaths_of([sent("b", 7, 5_000, died())], NAMES)
    assert (found.node, found.component_id, found.generation, found.died_at_wall_ms) == ("k2", W, 1, 5_000)
    assert (found.cause, found.exit_code, found.uptime_ms) == (Cause.EXITED, 3, 4_000)
    assert (found.reason, found.delay_ms) == ("Restart #1 with 1s backoff", 1_000)


def test_other_events_and_those_of_another_version_are_left_out() -> None:
    started = sent("a", 1, 1_000, WorkerStarted(W, 1, 99))
    strange = EventRecord(
        id=2, at_wall_ms=1, type="worker_died", component_id=W, payload='{"cause": "moonlight"}'
    )
    assert deaths_of([started, ShippedEvent("a", strange)], NAMES) == ()


def test_the_deaths_of_all_nodes_are_in_the_order_of_their_times() -> None:
    here = on_node(deaths_of([sent("a", 9, 2_000, died(4))], {}), "k1")
    there = deaths_of([sent("b", 1, 3_000, died(1)), sent("c", 1, 1_000, died(2))], NAMES)
    assert [(each.node, each.generation) for each in newest((*here, *there), 10)] == [
        ("k2", 1),
        ("k1", 4),
        ("c", 2),
    ]
    assert len(newest((*here, *there), 2)) == 2


def test_a_timeline_has_the_node_of_each_entry_and_the_mean_time_over_all_nodes() -> None:
    own = TimelineSources(own=[numbered(5, 9_000, died(2, 6_000))], lives=Lives(1, 6_000))
    past = ShippedPast(
        (sent("b", 2, 8_000, died(1, 2_000)), sent("b", 1, 1_000, WorkerStarted(W, 1, 99))),
        {"b": Lives(1, 2_000)},
    )
    found = timeline_of_all(W, [("k1", timeline(W, own, limit=10))], past, NAMES, 10)
    assert [each.node for each in found.entries] == ["k1", "k1", "k2", "k2", "k2"]
    assert (found.ever.deaths, found.ever.mean_between_ms) == (2, 4_000)
    assert not found.more
    assert timeline_of_all(W, [], past, NAMES, 1).more
    assert msgspec.json.decode(msgspec.json.encode(found), type=type(found)) == found
