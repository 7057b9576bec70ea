"""Clusters in one moment, as the tests of placement and moving need them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from rekindle.actors.cluster.cluster_messages import BeginRelease, NoteUnplaced, PlaceWorker
from rekindle.actors.cluster.facts.nodes import Node, NodeState, Resources
from rekindle.actors.cluster.facts.tenures import Assignment, TenurePhase
from rekindle.actors.cluster.facts.wishes import Wish
from rekindle.actors.cluster.rules.fleet import Fleet
from rekindle.actors.cluster.rules.placement import plan
from rekindle.actors.cluster.rules.worker_moves import Move, rebalancing
from rekindle.actors.spec.deployment.place_policy import PlacePolicy

NOW_MS = 1_000_000


def node(
    name: str,
    state: NodeState = NodeState.UP,
    *,
    labels: Mapping[str, str] | None = None,
    fresh: bool = True,
    **capacity: float,
) -> Node:
    """A node with this id and name."""
    return Node(
        id=name,
        name=name,
        state=state,
        incarnation=3,
        labels=labels or {},
        capacity=Resources(amounts=capacity),
        lease_until_ms=NOW_MS + (2_000 if fresh else -1),
    )


def wish(component_id: str, place: PlacePolicy | None = None, **fields: object) -> Wish:
    """A worker; those of one group have its name before the colon."""
    group = component_id.partition(":")[0]
    return replace(Wish(component_id=component_id, group=group, place=place or PlacePolicy()), **fields)


def copies_of(group: str, count: int, place: PlacePolicy | None = None, **fields: object) -> list[Wish]:
    """The copies of one table."""
    return [wish(f"{group}:{number}", place, **fields) for number in range(count)]


def fleet(
    nodes: Sequence[Node],
    wishes: Sequence[Wish],
    on: Mapping[str, str] | None = None,
    phases: Mapping[str, TenurePhase] | None = None,
    **fields: object,
) -> Fleet:
    """The cluster; `on` has the nodes of the workers that are placed."""
    placed = on or {}
    assignments = {
        each.component_id: Assignment(
            component_id=each.component_id,
            epoch=5,
            node_id=placed.get(each.component_id),
            phase=(phases or {}).get(
                each.component_id, TenurePhase.PLACED if each.component_id in placed else TenurePhase.UNPLACED
            ),
        )
        for each in wishes
    }
    return replace(
        Fleet(
            now_ms=NOW_MS,
            nodes={each.id: each for each in nodes},
            wishes={each.component_id: each for each in wishes},
            assignments=assignments,
        ),
        **fields,
    )


def placed(found: Fleet) -> dict[str, str]:
    """Where the plan places the workers that have no node."""
    return {each.component_id: each.node_id for each in plan(found).places}


def with_changes(found: Fleet, changes: Sequence[PlaceWorker | BeginRelease | NoteUnplaced | Move]) -> Fleet:
    """The cluster after changes; a released worker is given back at once."""
    assignments = dict(found.assignments)
    for change in changes:
        before = assignments[change.component_id]
        match change:
            case PlaceWorker(node_id=target):
                after = replace(before, node_id=target, phase=TenurePhase.PLACED, epoch=before.epoch + 1)
            case Move(target=target):
                after = replace(before, node_id=target, epoch=before.epoch + 1)
            case NoteUnplaced(reason=reason):
                after = replace(before, reason=reason)
            case BeginRelease():
                after = replace(before, node_id=None, phase=TenurePhase.UNPLACED)
        assignments[change.component_id] = after
    return replace(found, assignments=assignments)


def rebalanced(found: Fleet, most: int = 100) -> tuple[Fleet, int]:
    """The cluster after all moves of a rebalancing, and how many rounds it took."""
    for rounds in range(most):
        moves = rebalancing(found)
        if not moves:
            return found, rounds
        found = with_changes(found, moves)
    raise AssertionError(f"the rebalancing has not ended after {most} rounds")
