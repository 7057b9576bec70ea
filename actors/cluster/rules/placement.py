"""Pure: on which node a worker starts; and if on none, why not, node by node.

    every node ─ filter ─▶ state, lease, pin, labels, needs, per_node, apart_from, died there
               ─ sort ───▶ chosen by an operator, spread over a label, copies of its group, load, where it
                           was before, name
               ─▶ the first, or unplaced with the reason of each node

A worker of a group that stands and falls together goes where the group is; the first one goes where all of
them fit. A worker that comes after others waits until they are ready or done.

Only workers without a node are placed. Nothing moves because a node joins or returns: `worker_moves` has the
reasons for which something does.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ..cluster_messages import NoteUnplaced, PlaceWorker
from ..facts.nodes import Node, NodeState
from ..facts.wishes import Wanted, Wish
from .fleet import Fleet, Occupancy
from .order.prerequisites import unmet
from .order.units import unit_of


class Chosen(msgspec.Struct, frozen=True):
    """The node for a worker, and why this one."""

    node: Node
    reason: str


class NoPlace(msgspec.Struct, frozen=True):
    """No node takes the worker; the reason of each, by name."""

    reasons: tuple[tuple[str, str], ...]
    waits: str = ""
    """What it waits for, whatever the nodes are like."""

    @property
    def reason(self) -> str:
        """All in one line."""
        if self.waits:
            return self.waits
        if not self.reasons:
            return "no node has joined"
        return "; ".join(f"{name}: {why}" for name, why in self.reasons)


class PlacementPlan(msgspec.Struct, frozen=True):
    """What to place, and what stays unplaced for a reason that is new."""

    places: tuple[PlaceWorker, ...]
    unplaced: tuple[NoteUnplaced, ...]


def plan(fleet: Fleet, denied: Iterable[tuple[str, str]] = ()) -> PlacementPlan:
    """Place every worker that has no node; `denied`: workers and nodes for which the engine has no room."""
    occupancy = Occupancy(fleet)
    refused = frozenset(denied)
    places: list[PlaceWorker] = []
    unplaced: list[NoteUnplaced] = []
    for wish in sorted(fleet.unplaced(), key=_order):
        assignment = fleet.assignments[wish.component_id]
        found = place_of(fleet, occupancy, wish, refused)
        if isinstance(found, NoPlace):
            if found.reason != assignment.reason:
                unplaced.append(
                    NoteUnplaced(component_id=wish.component_id, epoch=assignment.epoch, reason=found.reason)
                )
            continue
        occupancy.add(wish, found.node.id)
        occupancy.settle(wish, found.node.id)
        places.append(
            PlaceWorker(
                component_id=wish.component_id,
                epoch=assignment.epoch,
                node_id=found.node.id,
                incarnation=found.node.incarnation,
                reason=found.reason,
            )
        )
    return PlacementPlan(tuple(places), tuple(unplaced))


def _order(wish: Wish) -> tuple[bool, bool, str, int, float, str]:
    """Workers that may run on one node only come first, then groups in their order, then the largest."""
    needs = -sum(wish.place.needs.values())
    return (wish.pinned is None, not wish.unit, wish.unit, len(wish.beside), needs, wish.component_id)


def place_of(
    fleet: Fleet, occupancy: Occupancy, wish: Wish, denied: frozenset[tuple[str, str]] = frozenset()
) -> Chosen | NoPlace:
    """The node for one worker now: what it waits for must be so, and its group keeps together."""
    if (waits := unmet(fleet, occupancy, wish)) is not None:
        return NoPlace((), waits)
    if not wish.unit:
        return choose(fleet, occupancy, wish, denied, fleet.assignments[wish.component_id].target)
    return _place_in_unit(fleet, occupancy, wish, denied)


def _place_in_unit(
    fleet: Fleet, occupancy: Occupancy, wish: Wish, denied: frozenset[tuple[str, str]]
) -> Chosen | NoPlace:
    """The node of its group; if no member has one, the best of those that take all of them."""
    unit = unit_of(fleet, wish.unit)
    home, target = occupancy.home(wish.unit), unit.target
    if unit.is_leaving or (home is not None and target not in (None, home)):
        return NoPlace((), f"group {wish.unit} is on its way to another node")
    if home is None:
        return choose(fleet, occupancy, wish, denied, target, beside=unit.unplaced)
    node = fleet.nodes[home]
    why = _unfit(fleet, occupancy, wish, node, denied)
    if why is not None:
        return NoPlace(((node.name, f"{why}; group {wish.unit} runs there"),))
    return Chosen(node, f"group {wish.unit} runs there")


def choose(
    fleet: Fleet,
    occupancy: Occupancy,
    wish: Wish,
    denied: frozenset[tuple[str, str]] = frozenset(),
    target: str | None = None,
    *,
    beside: Iterable[Wish] = (),
) -> Chosen | NoPlace:
    """The best node for one worker, and for those that must run beside it."""
    fitting: list[Node] = []
    reasons: list[tuple[str, str]] = []
    others = tuple(each for each in beside if each != wish)
    for node in sorted(fleet.nodes.values(), key=lambda each: each.name):
        why = _unfit_together(fleet, occupancy, (wish, *others), node, denied)
        if why is None:
            fitting.append(node)
        elif node.state is not NodeState.LEFT:
            reasons.append((node.name, why))
    if not fitting:
        return NoPlace(tuple(reasons))
    best = min(fitting, key=lambda node: _rank(fleet, occupancy, wish, node, target))
    return Chosen(best, _why(fleet, wish, best, target))


def _unfit_together(
    fleet: Fleet,
    occupancy: Occupancy,
    wishes: tuple[Wish, ...],
    node: Node,
    denied: frozenset[tuple[str, str]],
) -> str | None:
    """Why a node does not take all of these; None if it does."""
    added: list[Wish] = []
    try:
        for wish in wishes:
            if (why := _unfit(fleet, occupancy, wish, node, denied)) is not None:
                return f"{wish.component_id}: {why}" if added else why
            occupancy.add(wish, node.id)
            added.append(wish)
    finally:
        for wish in added:
            occupancy.add(wish, node.id, -1)
    return None


def _unfit(
    fleet: Fleet, occupancy: Occupancy, wish: Wish, node: Node, denied: frozenset[tuple[str, str]]
) -> str | None:
    why = misfit(fleet, occupancy, wish, node)
    if why is None and (wish.component_id, node.id) in denied:
        return "the engine has no room there"
    return why


def misfit(fleet: Fleet, occupancy: Occupancy, wish: Wish, node: Node) -> str | None:
    """Why a node does not take a worker; None if it does."""
    place = wish.place
    if not node.state.takes_workers:
        return node.state.value
    if not fleet.is_fresh(node):
        return "its lease is over"
    if node.state is NodeState.PAROLED and occupancy.workers(node.id) > 0:
        return "paroled: it has its canary"
    if wish.pinned is not None and wish.pinned != node.id:
        return "this copy belongs to another node"
    for name, value in place.labels.items():
        if node.labels.get(name) != value:
            return f"its label {name} is {node.labels.get(name) or 'not set'}, not {value}"
    for name, amount in place.needs.items():
        if occupancy.free(node, name) + 1e-9 < amount:
            free, total = occupancy.free(node, name), node.capacity.of(name)
            return f"{name}: needs {amount:g}, {free:g} of {total:g} free"
    if place.per_node is not None and occupancy.copies(wish, node.id) >= place.per_node:
        return f"has {occupancy.copies(wish, node.id)} copies, per_node = {place.per_node}"
    if (near := occupancy.kept_apart(wish, node.id)) is not None:
        return f"runs {near}"
    assignment = fleet.assignments.get(wish.component_id)
    if assignment is not None and (why := assignment.refused.get(node.id)):
        return f"cannot run it: {why}"
    if node.id in fleet.died_on.get(wish.component_id, ()):
        return "it has just died there"
    return None


def _rank(
    fleet: Fleet, occupancy: Occupancy, wish: Wish, node: Node, target: str | None
) -> tuple[bool, int, int, float, bool, str]:
    label = wish.place.spread
    in_label = occupancy.copies_with_label(wish, label, node.labels.get(label, "")) if label else 0
    packs = wish.place.pack
    return (
        node.id != target,
        in_label,
        0 if packs else occupancy.copies(wish, node.id),
        -occupancy.load(node) if packs else occupancy.load(node),
        fleet.former.get(wish.component_id) != node.id,
        node.name,
    )


def _why(fleet: Fleet, wish: Wish, node: Node, target: str | None) -> str:
    if node.id == target:
        return "an operator chose it"
    if wish.pinned is not None:
        return "it runs on each node"
    if fleet.former.get(wish.component_id) == node.id:
        return "it was there before"
    if wish.place.pack:
        return "the fullest node with room"
    if wish.place.spread:
        value = node.labels.get(wish.place.spread, "none")
        return f"the fewest copies in {wish.place.spread} {value}"
    return "the fewest copies and the least load"


# ── one copy on each node ────────────────────────────────────────────────────────────────


def copies(fleet: Fleet) -> tuple[Wish, ...]:
    """The wishes to put so that each template has its copies, and no others."""
    wanted = {copy.component_id: copy for copy in _wanted_copies(fleet)}
    present = {id_: wish for id_, wish in fleet.wishes.items() if wish.pinned is not None}
    changed = [copy for id_, copy in wanted.items() if not _is_put(present.get(id_), copy)]
    gone = [
        msgspec.structs.replace(wish, wanted=Wanted.GONE)
        for id_, wish in present.items()
        if id_ not in wanted and wish.wanted is not Wanted.GONE
    ]
    return (*changed, *gone)


def _is_put(present: Wish | None, copy: Wish) -> bool:
    """Whether the store has the copy: each wish has a revision of its own there, and a task may be done."""
    if present is None:
        return False
    wanted = present.wanted if present.wanted is Wanted.DONE else copy.wanted
    return msgspec.structs.replace(copy, revision=present.revision, wanted=wanted) == present


def _wanted_copies(fleet: Fleet) -> Iterable[Wish]:
    members = {node.name for node in fleet.nodes.values() if node.state.is_member}
    for template in fleet.wishes.values():
        if not template.is_template or template.wanted is Wanted.GONE:
            continue
        for node in fleet.nodes.values():
            fits = all(node.labels.get(name) == value for name, value in template.place.labels.items())
            # A lost machine keeps its copy, unless another one has taken its name, and with it the copy.
            is_replaced = not node.state.is_member and node.name in members
            if fits and node.state is not NodeState.LEFT and not is_replaced:
                yield msgspec.structs.replace(
                    template,
                    component_id=f"{template.component_id}:{node.name}",
                    group=template.component_id,
                    pinned=node.id,
                )
