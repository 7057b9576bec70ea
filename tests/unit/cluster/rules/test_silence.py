"""When a leader has seen a node silent for long enough."""

from __future__ import annotations

from rekindle.actors.cluster.facts.nodes import Node
from rekindle.actors.cluster.rules.silence import Watch, read, silent

from ..leases import T, a_node


def readings(*rows: tuple[float, Node]) -> Watch:
    watch = Watch()
    for at, node in rows:
        watch = read(watch, (node,), T, at)
    return watch


def unchanged(until: float, node: Node | None = None) -> Watch:
    return readings(*((step / 2, node or a_node(renewals=4)) for step in range(round(until * 2) + 1)))


def test_a_row_that_does_not_change_for_the_lease_and_the_margin_is_silent() -> None:
    watch = unchanged(3.0)
    assert silent(watch, T, 3.49) == {}
    assert [(seen.renewals, seen.since) for seen in silent(watch, T, 3.5).values()] == [(4, 0.0)]


def test_a_renewal_begins_the_wait_again() -> None:
    watch = read(unchanged(3.0), (a_node(renewals=5),), T, 3.2)
    assert silent(watch, T, 3.6) == {}


def test_a_new_life_begins_the_wait_again() -> None:
    watch = read(unchanged(3.0), (a_node(renewals=4, incarnation=2),), T, 3.2)
    assert silent(watch, T, 3.6) == {}


def test_after_a_gap_in_its_reading_the_leader_waits_again() -> None:
    watch = read(unchanged(3.0), (a_node(renewals=4),), T, 4.6)
    assert silent(watch, T, 4.6) == {}


def test_a_node_that_is_gone_from_the_database_is_forgotten() -> None:
    assert silent(read(unchanged(3.0), (), T, 3.2), T, 9.0) == {}
