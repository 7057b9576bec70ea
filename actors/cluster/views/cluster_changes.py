"""Pure: what has happened in a cluster between two looks at it, as events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from ...messages import (
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
from ..facts.looks import ClusterLook
from ..facts.nodes import Node, NodeState


class SeenCluster(msgspec.Struct, frozen=True):
    """What one node has seen so far."""

    look: ClusterLook
    homes: Mapping[str, str]
    """By worker: the node where it was last."""
    homeless: frozenset[str]
    """The workers of which it was said that no node takes them."""
    drained: frozenset[str]


def watched(look: ClusterLook) -> SeenCluster:
    """The first look: nothing in it is news."""
    return SeenCluster(look, _homes(look), frozenset(), _drained(look))


def changes(
    before: SeenCluster, look: ClusterLook, own_id: str, unplaced_after_s: float
) -> tuple[SeenCluster, tuple[ClusterEvent, ...]]:
    """What is new in a look; a worker without a node is news after that time."""
    leads = look.leader == own_id
    names = {node.id: node.name for node in (*before.look.nodes, *look.nodes)}
    late = {
        each.component_id: each
        for each in look.assignments
        if each.node_id is None and look.now_ms - each.since_ms >= unplaced_after_s * 1000
    }
    known = {each.component_id for each in look.assignments}
    homeless = frozenset(id_ for id_ in before.homeless if id_ in known and id_ not in _homes(look))
    events = (
        *_of_nodes(before.look, look, leads),
        *(NodeDrained(names[node_id]) for node_id in sorted(_drained(look) - before.drained)),
        *_leader(before.look, look, names),
        *_moves(before, look, names),
        *(
            WorkerUnplaced(id_, each.reason, (look.now_ms - each.since_ms) / 1000, leads)
            for id_, each in late.items()
            if id_ not in homeless
        ),
        *(WorkerUnwanted(id_) for id_ in sorted(before.homeless - known)),
    )
    homes = {id_: home for id_, home in before.homes.items() if id_ in known}
    after = SeenCluster(look, {**homes, **_homes(look)}, homeless | late.keys(), _drained(look))
    return after, events


def _homes(look: ClusterLook) -> dict[str, str]:
    return {each.component_id: each.node_id for each in look.assignments if each.node_id is not None}


def _drained(look: ClusterLook) -> frozenset[str]:
    busy = {each.node_id for each in look.assignments}
    return frozenset(
        node.id for node in look.nodes if node.state is NodeState.DRAINING and node.id not in busy
    )


def _moves(before: SeenCluster, look: ClusterLook, names: Mapping[str, str]) -> Iterator[ClusterEvent]:
    for each in look.assignments:
        home = before.homes.get(each.component_id)
        has_moved = home is not None and home != each.node_id
        if each.node_id is not None and (has_moved or each.component_id in before.homeless):
            source = None if home is None else names.get(home)
            yield WorkerMoved(each.component_id, source, names.get(each.node_id, each.node_id), each.reason)


def _leader(before: ClusterLook, after: ClusterLook, names: Mapping[str, str]) -> Iterator[ClusterEvent]:
    if before.leader != after.leader:
        yield LeaderChanged(None if after.leader is None else names.get(after.leader, after.leader))


def _of_nodes(before: ClusterLook, after: ClusterLook, leads: bool) -> Iterator[ClusterEvent]:
    known = {node.id: node for node in before.nodes}
    for node in after.nodes:
        former = known.pop(node.id, None)
        if former is None:
            yield NodeJoined(node.name)
        elif (former.state, former.state_reason) != (node.state, node.state_reason):
            yield from _of_node(former, node, leads)
    yield from (NodeLeft(node.name) for node in _present(known.values()))


def _present(nodes: Iterable[Node]) -> Iterable[Node]:
    return (node for node in nodes if node.state is not NodeState.LEFT)


def _of_node(before: Node, after: Node, leads: bool) -> Iterator[ClusterEvent]:
    name, reason, by = after.name, after.state_reason, after.state_by
    was_away = not before.state.is_member
    if was_away and after.state.is_member:
        yield NodeJoined(name)
    match after.state:
        case NodeState.LOST if not was_away:
            yield NodeLost(name, reason, leads)
        case NodeState.LEFT:
            yield NodeLeft(name)
        case NodeState.CORDONED:
            yield NodeCordoned(name, reason, by)
        case NodeState.SUSPECT if before.state is not NodeState.SUSPECT:
            yield NodeSuspected(name, reason, leads)
        case NodeState.CONVICTED if before.state is not NodeState.CONVICTED:
            yield NodeConvicted(name, reason, leads)
        case NodeState.PAROLED if before.state is not NodeState.PAROLED:
            yield NodeParoled(name, reason)
        case NodeState.DRAINING if before.state is not NodeState.DRAINING:
            yield NodeDraining(name, reason, by)
        case NodeState.UP if before.state in (NodeState.SUSPECT, NodeState.CONVICTED, NodeState.PAROLED):
            yield NodeAcquitted(name)
        case NodeState.UP if before.state in (NodeState.CORDONED, NodeState.DRAINING):
            yield NodeUncordoned(name)
        case _:
            pass
