"""Pure: groups that stand and fall together, as units of placement: all workers of one run on one node.

no member has a node ─ one node takes all of them ─▶ placed there, in their order
its node drains, or a member is moved ─▶ all are released; placed together when the last has ended
members on two nodes (the file has changed) ─▶ those on the node with fewer are released
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from ...cluster_messages import BeginRelease
from ...facts.tenures import Assignment, TenurePhase
from ...facts.wishes import Wish
from ..fleet import Fleet


class Unit(msgspec.Struct, frozen=True):
    """Where the workers of one group are."""

    unplaced: tuple[Wish, ...]
    """Those that should run and have no node."""
    placed: tuple[Assignment, ...]
    leaving: tuple[Assignment, ...]
    target: str | None
    """The node where an operator wants one of them."""

    @property
    def is_leaving(self) -> bool:
        """Whether a member is still ending on its node."""
        return bool(self.leaving)


def unit_of(fleet: Fleet, name: str) -> Unit:
    """The members of a group."""
    ids = {wish.component_id for wish in fleet.wishes.values() if wish.unit == name}
    held = [fleet.assignments[id_] for id_ in sorted(ids) if id_ in fleet.assignments]
    return Unit(
        unplaced=tuple(wish for wish in fleet.unplaced() if wish.unit == name),
        placed=tuple(each for each in held if each.phase is TenurePhase.PLACED),
        leaving=tuple(each for each in held if each.phase is TenurePhase.RELEASING),
        target=next((each.target for each in held if each.target is not None), None),
    )


def reunions(fleet: Fleet) -> Iterable[BeginRelease]:
    """The members to release so that each group is on one node again."""
    for name in sorted({wish.unit for wish in fleet.wishes.values()} - {""}):
        unit = unit_of(fleet, name)
        nodes = Counter(each.node_id for each in unit.placed)
        if not nodes:
            continue
        home = unit.target or min(nodes, key=lambda node_id: (-nodes[node_id], node_id or ""))
        for each in unit.placed:
            if each.node_id != home:
                reason = f"group {name} keeps together"
                yield BeginRelease(
                    component_id=each.component_id, epoch=each.epoch, reason=reason, target=home
                )
