"""Pure: what an engine should have reserved, and what its offers say of the nodes.

on a node          ─▶ a claim on that node, under the epoch that runs there
about to be placed ─▶ a claim on the node that was chosen for it
fits nowhere       ─▶ a claim on no node: demand, for which an engine may start a machine
a machine without a node ─▶ an agent is wanted there
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec.structs import replace

from ..engine_messages import NodeOffered, RoomClaim
from ..facts.nodes import Node, NodeState, Resources
from .fleet import Fleet


def claim(found: Fleet, component_id: str, node_id: str | None) -> RoomClaim:
    """The reservation of a worker on a node; without one it is demand."""
    wish, node = found.wishes[component_id], found.nodes.get(node_id or "")
    return RoomClaim(
        component_id=component_id,
        epoch=found.assignments[component_id].epoch,
        node_id=node_id,
        engine_node="" if node is None else node.engine_node,
        needs=Resources(amounts=wish.place.needs),
        labels=wish.place.labels,
    )


def reservations(found: Fleet, chosen: Mapping[str, str]) -> tuple[RoomClaim, ...]:
    """All claims of the cluster; `chosen` has the nodes of those that wait for the engine."""
    unplaced = {wish.component_id for wish in found.unplaced()}
    claims = []
    for component_id, wish in found.wishes.items():
        assignment = found.assignments.get(component_id)
        if assignment is None or not wish.place.needs:
            continue
        if assignment.node_id is not None:
            claims.append(claim(found, component_id, assignment.node_id))
        elif component_id in unplaced:
            claims.append(claim(found, component_id, chosen.get(component_id)))
    return tuple(claims)


def offered(found: Fleet, offers: Mapping[str, NodeOffered]) -> Fleet:
    """The cluster, where a node that declares no capacity has what the engine offers there."""
    nodes = {id_: _offered(node, offers) for id_, node in found.nodes.items()}
    return replace(found, nodes=MappingProxyType(nodes))


def without_agent(found: Fleet, offers: Mapping[str, NodeOffered]) -> tuple[str, ...]:
    """The machines of the engine without a node; one that has left stays out."""
    known = {
        node.engine_node
        for node in found.nodes.values()
        if node.state.is_member or node.state is NodeState.LEFT
    }
    return tuple(sorted(offers.keys() - known))


def _offered(node: Node, offers: Mapping[str, NodeOffered]) -> Node:
    offer = offers.get(node.engine_node) if node.engine_node else None
    return node if offer is None or node.capacity.amounts else replace(node, capacity=offer.total)
