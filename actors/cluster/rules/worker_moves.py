"""Pure: which workers leave their nodes, and when.

    draining node ─┐
    a suspicion ───┤
    stopped, gone ─┼─▶ releasing ─ its agent stops it ─▶ unplaced ─ placement ─▶ placed under a new epoch
    an operator ───┘

Stop first, always: two processes of one worker never run. A drain takes as many copies of a group at a time
as `min_healthy` allows, one by one if nothing is said; after its deadline it takes all that are left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from ..cluster_messages import BeginRelease, RemoveWish
from ..facts.nodes import Node, NodeState
from ..facts.tenures import Assignment, TenurePhase
from ..facts.wishes import Wanted, Wish
from .fleet import Fleet, Occupancy
from .order.units import reunions
from .placement import NoPlace, misfit, place_of


class Move(msgspec.Struct, frozen=True):
    """One worker that should run elsewhere."""

    component_id: str
    source: str
    target: str
    reason: str


def releases(fleet: Fleet) -> tuple[BeginRelease, ...]:
    """The workers to release now: those that should not run, those of nodes that empty, and witnesses."""
    found = [*_unwanted(fleet)]
    absent = _absent(fleet)
    for assignment, wish, node in sorted(_on_emptying_nodes(fleet), key=lambda each: each[0].component_id):
        # A group that stands and falls together leaves together.
        is_free = wish.unit or node.is_overdue(fleet.now_ms)
        if is_free or absent[wish.group] < _most_absent(fleet, wish):
            absent[wish.group] += 1
            reason = f"{node.name} is {node.state.value}"
            found.append(BeginRelease(component_id=wish.component_id, epoch=assignment.epoch, reason=reason))
    found += _canaries(fleet, absent)
    leaving = {each.component_id for each in found}
    return (*found, *(each for each in reunions(fleet) if each.component_id not in leaving))


def _canaries(fleet: Fleet, absent: Counter[str]) -> Iterable[BeginRelease]:
    """One worker for each paroled node without one: best one of those that died there."""
    awaited = {each.target for each in fleet.assignments.values()}
    for node in fleet.nodes.values():
        is_empty = not any(each.node_id == node.id for each in fleet.assignments.values())
        if node.state is not NodeState.PAROLED or not is_empty or node.id in awaited:
            continue
        died = fleet.canaries.get(node.id, ())
        spare = [each for each in _spare(fleet, absent, node) if not died or each in died]
        if spare:
            canary = min(spare, key=lambda each: (died.index(each) if each in died else 0, each))
            absent[fleet.wishes[canary].group] += 1
            epoch = fleet.assignments[canary].epoch
            reason = f"it is the canary of {node.name}"
            yield BeginRelease(component_id=canary, epoch=epoch, reason=reason, target=node.id)


def _spare(fleet: Fleet, absent: Counter[str], node: Node) -> Iterable[str]:
    """The workers that may move to a node now."""
    occupancy = Occupancy(fleet)
    for assignment in fleet.assignments.values():
        wish = fleet.wishes.get(assignment.component_id)
        if wish is None or assignment.phase is not TenurePhase.PLACED or wish.wanted is not Wanted.RUN:
            continue
        is_free = not (wish.pinned or wish.unit) and absent[wish.group] < _most_absent(fleet, wish)
        if is_free and misfit(fleet, occupancy, wish, node) is None:
            yield wish.component_id


def removals(fleet: Fleet) -> tuple[RemoveWish, ...]:
    """The wishes whose workers have been given back and are no longer wanted."""
    return tuple(
        RemoveWish(wish.component_id)
        for wish in fleet.wishes.values()
        if wish.wanted is Wanted.GONE and _phase(fleet, wish) in (None, TenurePhase.UNPLACED)
    )


def _unwanted(fleet: Fleet) -> Iterable[BeginRelease]:
    for assignment in fleet.assignments.values():
        wish = fleet.wishes.get(assignment.component_id)
        reason = "it was removed" if wish is None else _ENDS.get(wish.wanted)
        if reason is not None and assignment.phase is TenurePhase.PLACED:
            yield BeginRelease(component_id=assignment.component_id, epoch=assignment.epoch, reason=reason)


_ENDS = {
    Wanted.STOP: "it was stopped",
    Wanted.GONE: "it was removed",
    Wanted.DONE: "it is done",
}


def _on_emptying_nodes(fleet: Fleet) -> Iterable[tuple[Assignment, Wish, Node]]:
    for assignment in fleet.assignments.values():
        wish = fleet.wishes.get(assignment.component_id)
        node = fleet.nodes.get(assignment.node_id or "")
        if wish is None or node is None or assignment.phase is not TenurePhase.PLACED:
            continue
        # One worker of a group has nowhere to go without the others.
        is_asked = fleet.witnesses.get(assignment.component_id) == node.id and not wish.unit
        is_witness = node.state is NodeState.SUSPECT and is_asked
        if (node.state.empties or is_witness) and wish.wanted in (Wanted.RUN, Wanted.PAUSE):
            yield assignment, wish, node


def _absent(fleet: Fleet) -> Counter[str]:
    """By group: how many of its wanted copies have no place, or are leaving theirs."""
    return Counter(
        wish.group
        for wish in fleet.wishes.values()
        if wish.wanted is Wanted.RUN
        and not wish.is_template
        and _phase(fleet, wish) is not TenurePhase.PLACED
    )


def _most_absent(fleet: Fleet, wish: Wish) -> int:
    """How many copies of its group may be without a place at the same time; at least one."""
    if wish.pinned is not None:
        return len(fleet.wishes)  # The copies of a worker that runs everywhere do not replace each other.
    if wish.min_healthy is None:
        return 1
    size = sum(1 for each in fleet.wishes.values() if each.group == wish.group and not each.is_template)
    return max(1, size - wish.min_healthy)


def _phase(fleet: Fleet, wish: Wish) -> TenurePhase | None:
    assignment = fleet.assignments.get(wish.component_id)
    return None if assignment is None else assignment.phase


# ── the way of workers off their node ────────────────────────────────────────────────────


class Departure(msgspec.Struct, frozen=True):
    """How far the workers that a node had are on their way."""

    under_way: frozenset[str]
    """Those that are still there, or have left and are not placed yet."""
    unplaced: Mapping[str, str]
    """By worker: why no node takes it."""


def inhabitants(fleet: Fleet, node: Node) -> frozenset[str]:
    """The workers that a node has, or has just released for another node to take."""
    there = {id_ for id_, each in fleet.assignments.items() if each.node_id == node.id}
    former = {
        wish.component_id for wish in fleet.unplaced() if fleet.former.get(wish.component_id) == node.id
    }
    return frozenset(there | former - homeless(fleet).keys())


def departure(fleet: Fleet, node: Node, ids: frozenset[str]) -> Departure:
    """Where the workers are that the node had; those that should no longer run have arrived."""
    there = {id_ for id_ in ids if _node_of(fleet, id_) == node.id}
    waiting = {wish.component_id for wish in fleet.unplaced() if wish.pinned is None} & ids
    unplaced = {id_: why for id_, why in homeless(fleet).items() if id_ in waiting}
    return Departure(frozenset(there | waiting - unplaced.keys()), unplaced)


def homeless(fleet: Fleet) -> dict[str, str]:
    """By worker: why it has no node, once the placement has looked for one and has recorded the reason."""
    occupancy = Occupancy(fleet)
    found: dict[str, str] = {}
    for wish in fleet.unplaced():
        # The engine has denied every node that fits, or the placement would not have given up.
        denied = frozenset((wish.component_id, node_id) for node_id in fleet.nodes)
        noted, choice = fleet.assignments[wish.component_id].reason, place_of(fleet, occupancy, wish, denied)
        if isinstance(choice, NoPlace) and choice.reason == noted:
            found[wish.component_id] = noted
    return found


def _node_of(fleet: Fleet, component_id: str) -> str | None:
    assignment = fleet.assignments.get(component_id)
    return None if assignment is None else assignment.node_id


# ── rebalancing, on demand only ──────────────────────────────────────────────────────────


def rebalancing(fleet: Fleet) -> tuple[Move, ...]:
    """The next moves towards even nodes: at most one of each group, and none that gains nothing.

    A group that misses as many copies as `min_healthy` allows stays as it is.
    """
    occupancy, absent = Occupancy(fleet), _absent(fleet)
    moves: dict[str, Move] = {}
    for assignment in sorted(fleet.assignments.values(), key=lambda each: each.component_id):
        wish = fleet.wishes.get(assignment.component_id)
        source = fleet.nodes.get(assignment.node_id or "")
        if (
            wish is None
            or source is None
            or assignment.phase is not TenurePhase.PLACED
            or wish.group in moves
        ):
            continue
        if wish.pinned is not None or wish.unit or wish.place.pack or wish.wanted is not Wanted.RUN:
            continue
        if absent[wish.group] >= _most_absent(fleet, wish):
            continue
        if (move := _better_place(fleet, occupancy, wish, source)) is not None:
            moves[wish.group] = move
    return tuple(moves.values())


def all_moves(fleet: Fleet) -> tuple[Move, ...]:
    """All moves of a rebalancing, round after round, if nothing else changes meanwhile."""
    found: list[Move] = []
    for _ in fleet.wishes:
        if not (moves := rebalancing(fleet)):
            break
        found += moves
        moved = {
            each.component_id: replace(fleet.assignments[each.component_id], node_id=each.target)
            for each in moves
        }
        fleet = replace(fleet, assignments={**fleet.assignments, **moved})
    return tuple(found)


def _better_place(fleet: Fleet, occupancy: Occupancy, wish: Wish, source: Node) -> Move | None:
    occupancy.add(wish, source.id, -1)
    here = _crowd(occupancy, wish, source)
    others = [
        node
        for node in fleet.nodes.values()
        if node.id != source.id and misfit(fleet, occupancy, wish, node) is None
    ]
    best = min(others, key=lambda node: (_crowd(occupancy, wish, node), node.name), default=None)
    if best is None or _crowd(occupancy, wish, best) >= here:
        occupancy.add(wish, source.id)
        return None
    occupancy.add(wish, best.id)
    return Move(wish.component_id, source.id, best.id, _why(occupancy, wish, source, best))


def _crowd(occupancy: Occupancy, wish: Wish, node: Node) -> tuple[int, int, int]:
    """What the worker would find there, without itself: the less the better."""
    label = wish.place.spread
    in_label = occupancy.copies_with_label(wish, label, node.labels.get(label, "")) if label else 0
    return (in_label, occupancy.copies(wish, node.id), occupancy.workers(node.id) // 2)


def _why(occupancy: Occupancy, wish: Wish, source: Node, target: Node) -> str:
    if occupancy.copies(wish, source.id) > 0:
        return f"{source.name} has more copies of {wish.group} than {target.name}"
    return f"{source.name} has more workers than {target.name}"
