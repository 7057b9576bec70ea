"""Pure: which rulings the leader gives now, from what it has read of the cluster.

nodes that the fleet cannot do without, or that an operator holds ─▶ spared
workers that fit on no other node                                 ─▶ no witnesses
`suspects`: act ─▶ rulings, tell ─▶ notices, off ─▶ what is held is released
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Literal

from ...cluster_messages import ClusterRead
from ...facts.cases import Case, GiveRuling, KeptRuling, Trusted, is_held
from ...facts.node_lives import NodeLife
from ...facts.nodes import Node, NodeState
from ...facts.tenures import TenurePhase
from ...facts.wishes import Wanted, Wish
from ..fleet import Fleet, Occupancy
from ..placement import misfit
from .suspicion import Ruling, WorkerLife, evidence, notices, releases, rulings

SuspectMode = Literal["act", "tell", "off"]


def given(read: ClusterRead, fleet: Fleet, mode: SuspectMode) -> tuple[GiveRuling, ...]:
    """The rulings to give now."""
    latest = {each.node_id: each for each in read.rulings}
    cases = cases_of(fleet, latest)
    numbers = {node_id: latest[node_id].number if node_id in latest else 0 for node_id in cases}
    return tuple(
        GiveRuling(node_id=each.node, number=numbers[each.node] + 1, case=each.case, why=each.why)
        for each in _rulings(read, fleet, cases, mode)
    )


def chances(read: ClusterRead, fleet: Fleet) -> dict[str, float]:
    """By the name of each node: how probable the deaths there are by chance; 1 without any."""
    lives, now = judged(read.lives, fleet), read.now_ms / 1000
    dying = {life.node for life in lives if life.died}
    return {
        node.name: evidence(lives, node.id, now).p if node.id in dying else 1.0
        for node in fleet.nodes.values()
        if node.state.is_member
    }


def cases_of(fleet: Fleet, latest: Mapping[str, KeptRuling]) -> dict[str, Case]:
    """The cases of the nodes of the cluster, and of lost ones that are held."""
    cases: dict[str, Case] = {}
    for node in fleet.nodes.values():
        case = latest[node.id].case if node.id in latest else Trusted()
        if node.state.is_member or is_held(case):
            cases[node.id] = case
    return cases


def _rulings(
    read: ClusterRead, fleet: Fleet, cases: Mapping[str, Case], mode: SuspectMode
) -> tuple[Ruling, ...]:
    now = read.now_ms / 1000
    if mode == "off":
        return releases(cases, now)
    lives = judged(read.lives, fleet)
    if mode == "tell":
        return notices(cases, lives, now)
    dying = {(life.node, life.worker) for life in lives if life.died}
    needed = spared(fleet, {node for node, _ in dying})
    return rulings(cases, lives, now, needed, rooted(fleet, {worker for _, worker in dying}))


def judged(lives: Iterable[NodeLife], fleet: Fleet) -> tuple[WorkerLife, ...]:
    """The lives of processes as evidence: copies of one worker are one group."""
    return tuple(
        WorkerLife(
            each.component_id,
            wish.group or wish.component_id,
            each.node_id,
            each.began_ms / 1000,
            None if each.ended_ms is None else each.ended_ms / 1000,
            each.died,
            each.is_hard,
        )
        for each in lives
        if (wish := fleet.wishes.get(each.component_id)) is not None
    )


# ── brakes ───────────────────────────────────────────────────────────────────────────────


def spared(fleet: Fleet, among: Collection[str]) -> frozenset[str]:
    """Those of these nodes that are not to be suspected: an operator holds them, or the fleet needs them."""
    return frozenset(
        node.id
        for node in fleet.nodes.values()
        if node.id in among
        and (node.state is not NodeState.UP or not fleet.is_fresh(node) or is_needed(fleet, node))
    )


def is_needed(fleet: Fleet, node: Node) -> bool:
    """Whether without this node a worker would fit nowhere, or a group had less than its `min_healthy`."""
    return _is_last_of_a_label(fleet, node) or _leaves_too_few(fleet, node)


def _is_last_of_a_label(fleet: Fleet, node: Node) -> bool:
    others = [each for each in _takers(fleet) if each.id != node.id]
    return any(
        _has_labels(wish, node) and not any(_has_labels(wish, other) for other in others)
        for wish in _movable(fleet)
    )


def _has_labels(wish: Wish, node: Node) -> bool:
    return all(node.labels.get(name) == value for name, value in wish.place.labels.items())


def _leaves_too_few(fleet: Fleet, node: Node) -> bool:
    """Whether its workers find no room on the other nodes, all of them together."""
    occupancy = Occupancy(fleet)
    homeless: Counter[str] = Counter()
    for wish in _movable(fleet):
        if fleet.assignments[wish.component_id].node_id == node.id:
            occupancy.add(wish, node.id, -1)
            others = (each for each in _takers(fleet) if _fits(fleet, occupancy, wish, each, node))
            if (target := next(others, None)) is None:
                homeless[wish.group] += 1
            else:
                occupancy.add(wish, target.id)
    return any(_is_too_few(fleet, group, count) for group, count in homeless.items())


def _is_too_few(fleet: Fleet, group: str, homeless: int) -> bool:
    """Whether a group falls below its `min_healthy` (by default all) without this many copies."""
    copies = [wish for wish in _movable(fleet) if wish.group == group]
    placed = sum(fleet.assignments[wish.component_id].phase is not TenurePhase.UNPLACED for wish in copies)
    least = copies[0].min_healthy
    return least is None or placed - homeless < least


def _fits(fleet: Fleet, occupancy: Occupancy, wish: Wish, other: Node, node: Node) -> bool:
    return other.id != node.id and misfit(fleet, occupancy, wish, other) is None


def _takers(fleet: Fleet) -> list[Node]:
    return [node for node in fleet.nodes.values() if node.state is NodeState.UP and fleet.is_fresh(node)]


def _movable(fleet: Fleet) -> list[Wish]:
    """The workers that should run, and could run on another node."""
    return [
        wish
        for wish in fleet.wishes.values()
        if wish.wanted is Wanted.RUN
        and wish.pinned is None
        and not wish.is_template
        and wish.component_id in fleet.assignments
    ]


def rooted(fleet: Fleet, among: Iterable[str]) -> frozenset[str]:
    """Those of these workers that cannot be witnesses now: no other node takes them."""
    occupancy, movable = Occupancy(fleet), {wish.component_id for wish in _movable(fleet)}
    return frozenset(
        id_ for id_ in among if id_ not in movable or not _has_another_node(fleet, occupancy, id_)
    )


def _has_another_node(fleet: Fleet, occupancy: Occupancy, component_id: str) -> bool:
    wish, assignment = fleet.wishes[component_id], fleet.assignments[component_id]
    node = fleet.nodes.get(assignment.node_id or "")
    return node is not None and any(_fits(fleet, occupancy, wish, each, node) for each in _takers(fleet))
