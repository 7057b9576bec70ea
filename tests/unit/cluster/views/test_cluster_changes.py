"""What has happened between two looks at a cluster."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rekindle.actors.cluster.facts.looks import ClusterLook
from rekindle.actors.cluster.facts.nodes import Node, NodeState
from rekindle.actors.cluster.facts.tenures import Assignment, TenurePhase
from rekindle.actors.cluster.views.cluster_changes import SeenCluster, changes, watched
from rekindle.actors.messages import (
    ClusterEvent,
    LeaderChanged,
    NodeAcquitted,
    NodeConvicted,
    NodeCordoned,
    NodeDrained,
    NodeDraining,
    NodeJoined,
    NodeLeft,
    NodeLost,
    NodeParoled,
    NodeSuspected,
    NodeUncordoned,
    WorkerMoved,
    WorkerUnplaced,
    WorkerUnwanted,
)

from ..fleets import NOW_MS, node

U, C, S, D = NodeState.UP, NodeState.CORDONED, NodeState.SUSPECT, NodeState.DRAINING
CONVICTED, PAROLED = NodeState.CONVICTED, NodeState.PAROLED
LOST, LEFT = NodeState.LOST, NodeState.LEFT


def at(node_id: str | None, since_s: float = 0.0, reason: str = "r") -> Assignment:
    phase = TenurePhase.UNPLACED if node_id is None else TenurePhase.PLACED
    since_ms = NOW_MS - round(since_s * 1000)
    return Assignment(component_id="w", node_id=node_id, phase=phase, reason=reason, since_ms=since_ms)


def look(*assignments: Assignment, nodes: tuple[Node, ...] = (), leader: str | None = "a") -> ClusterLook:
    return ClusterLook(
        now_ms=NOW_MS, leader=leader, nodes=nodes or (node("a"), node("b")), assignments=assignments
    )


def after(before: SeenCluster, now: ClusterLook, own: str = "a") -> tuple[SeenCluster, list[ClusterEvent]]:
    seen, events = changes(before, now, own, 10.0)
    return seen, [*events]


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (U, U, []),
        (U, C, [NodeCordoned("a", "why", "ann")]),
        (C, U, [NodeUncordoned("a")]),
        (D, U, [NodeUncordoned("a")]),
        (U, D, [NodeDraining("a", "why", "ann"), NodeDrained("a")]),
        (U, S, [NodeSuspected("a", "why", True)]),
        (S, U, [NodeAcquitted("a")]),
        (S, CONVICTED, [NodeConvicted("a", "why", True)]),
        (CONVICTED, PAROLED, [NodeParoled("a", "why")]),
        (PAROLED, CONVICTED, [NodeConvicted("a", "why", True)]),
        (PAROLED, U, [NodeAcquitted("a")]),
        (CONVICTED, U, [NodeAcquitted("a")]),
        (S, D, [NodeDraining("a", "why", "ann"), NodeDrained("a")]),
        (U, LOST, [NodeLost("a", "why", True)]),
        (LOST, U, [NodeJoined("a")]),
        (LOST, C, [NodeJoined("a"), NodeCordoned("a", "why", "ann")]),
        (U, LEFT, [NodeLeft("a")]),
        (LEFT, U, [NodeJoined("a")]),
    ],
)
def test_a_changed_state_of_a_node_is_an_event(
    before: NodeState, now: NodeState, expected: list[ClusterEvent]
) -> None:
    changed = node("a", now)
    if before is not now:
        changed = replace(changed, state_reason="why", state_by="ann")
    seen = watched(look(nodes=(node("a", before),)))
    assert after(seen, look(nodes=(changed,)))[1] == expected


def test_a_node_that_is_new_has_joined_and_one_that_is_forgotten_has_left() -> None:
    seen, events = after(watched(look(nodes=(node("a"),))), look())
    assert events == [NodeJoined("b")]
    assert after(seen, look(nodes=(node("a"),)))[1] == [NodeLeft("b")]


def test_a_worker_that_goes_through_nowhere_has_moved_once() -> None:
    seen, events = after(watched(look(at("a"))), look(at(None)))
    assert events == []
    seen, events = after(seen, look(at("b")))
    assert events == [WorkerMoved("w", "a", "b", "r")]
    assert after(seen, look(at("b")))[1] == []


def test_a_worker_without_a_node_is_news_after_a_while_and_when_it_has_one_again() -> None:
    seen, events = after(watched(look(at("a"))), look(at(None, 9.0)))
    assert events == []
    seen, events = after(seen, look(at(None, 10.0, "a: full")), own="b")
    assert events == [WorkerUnplaced("w", "a: full", 10.0, leads=False)]
    seen, events = after(seen, look(at(None, 11.0, "a: full")))
    assert events == []
    assert after(seen, look(at("a")))[1] == [WorkerMoved("w", "a", "a", "r")]
    assert after(seen, look())[1] == [WorkerUnwanted("w")]


def test_a_new_leader_is_news() -> None:
    seen, events = after(watched(look()), look(leader=None))
    assert events == [LeaderChanged(None)]
    assert after(seen, look(leader="b"))[1] == [LeaderChanged("b")]
