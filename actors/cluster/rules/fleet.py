"""Pure: the whole cluster in one moment, and what each node has left."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec

from ..cluster_messages import ClusterRead
from ..facts.cases import KeptRuling, OnParole, Suspect
from ..facts.nodes import Node
from ..facts.tenures import Assignment, Tenure, TenurePhase
from ..facts.wishes import Wanted, Wish


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes, wishes and assignments by id."""

    now_ms: int = 0
    nodes: Mapping[str, Node] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    wishes: Mapping[str, Wish] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    assignments: Mapping[str, Assignment] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    former: Mapping[str, str] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    """By worker: the node of its latest tenure."""
    died_on: Mapping[str, frozenset[str]] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    """By worker: the nodes where it has just died because of the node."""
    witnesses: Mapping[str, str] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    """By worker: the suspect that it should leave."""
    canaries: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    """By paroled node: the workers that died there."""
    tenures: Mapping[str, Tenure] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    """The latest of each worker."""

    def is_fresh(self, node: Node) -> bool:
        """Whether the node's lease is in force by the database's clock."""
        return node.lease_until_ms > self.now_ms

    def unplaced(self) -> tuple[Wish, ...]:
        """The workers that should run and have no node."""
        return tuple(
            wish
            for wish in self.wishes.values()
            if wish.wanted is Wanted.RUN
            and not wish.is_template
            and self._phase(wish) is TenurePhase.UNPLACED
        )

    def _phase(self, wish: Wish) -> TenurePhase | None:
        assignment = self.assignments.get(wish.component_id)
        return None if assignment is None else assignment.phase


def fleet(read: ClusterRead, died_on: Mapping[str, frozenset[str]] = MappingProxyType({})) -> Fleet:
    """The cluster as it was read."""
    tenures = {each.component_id: each for each in sorted(read.tenures, key=lambda each: each.epoch)}
    return Fleet(
        now_ms=read.now_ms,
        nodes={node.id: node for node in read.nodes},
        wishes={wish.component_id: wish for wish in read.wishes},
        assignments={each.component_id: each for each in read.assignments},
        former={component_id: tenure.node_id for component_id, tenure in tenures.items()},
        tenures=tenures,
        died_on=died_on,
        witnesses=_witnesses(read.rulings),
        canaries={each.node_id: each.case.dying for each in read.rulings if isinstance(each.case, OnParole)},
    )


def _witnesses(rulings: Iterable[KeptRuling]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in rulings:
        if isinstance(each.case, Suspect):
            found |= dict.fromkeys(each.case.witnesses, each.node_id)
    return found


class Occupancy:
    """What runs on each node, and what is reserved there; it changes while a plan is made."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._groups: dict[str, Counter[str]] = {node_id: Counter() for node_id in fleet.nodes}
        self._reserved: dict[str, defaultdict[str, float]] = {
            node_id: defaultdict(float) for node_id in fleet.nodes
        }
        self._homes: dict[str, str] = {}
        """The node of each group that stands and falls together."""
        self._settled: set[str] = set()
        self._apart: dict[str, Counter[str]] = {node_id: Counter() for node_id in fleet.nodes}
        for assignment in fleet.assignments.values():
            wish = fleet.wishes.get(assignment.component_id)
            if wish is not None and assignment.node_id in self._groups:
                self.add(wish, assignment.node_id)
                if assignment.phase is TenurePhase.PLACED:
                    self.settle(wish, assignment.node_id)

    def add(self, wish: Wish, node_id: str, sign: int = 1) -> None:
        """Count a worker on a node; with -1 it is taken away."""
        self._groups[node_id][wish.group] += sign
        for name in wish.place.apart_from:
            self._apart[node_id][name] += sign
        for name, amount in wish.place.needs.items():
            self._reserved[node_id][name] += amount * sign

    def settle(self, wish: Wish, node_id: str) -> None:
        """Note that a worker is placed, or will be by this plan."""
        self._settled.add(wish.component_id)
        if wish.unit:
            self._homes[wish.unit] = node_id

    def is_settled(self, component_id: str) -> bool:
        """Whether a worker is placed, or will be by this plan."""
        return component_id in self._settled

    def home(self, unit: str) -> str | None:
        """The node where members of a group are placed."""
        return self._homes.get(unit)

    def workers(self, node_id: str) -> int:
        """How many workers the node has."""
        return self._groups[node_id].total()

    def copies(self, wish: Wish, node_id: str) -> int:
        """How many copies of the worker's group the node has."""
        return self._groups[node_id][wish.group]

    def copies_with_label(self, wish: Wish, label: str, value: str) -> int:
        """How many copies of its group run on nodes that have this value of a label."""
        return sum(
            self.copies(wish, node.id)
            for node in self._fleet.nodes.values()
            if node.labels.get(label, "") == value
        )

    def kept_apart(self, wish: Wish, node_id: str) -> str | None:
        """The worker on the node, by table, beside which it must not run."""
        present = self._groups[node_id]
        near = next((name for name in wish.place.apart_from if present[name] > 0), None)
        if near is None and self._apart[node_id][wish.group] > 0:
            return "a worker that is kept apart from it"
        return near

    def free(self, node: Node, resource: str) -> float:
        """How much of a resource is not reserved."""
        return node.capacity.of(resource) - self._reserved[node.id][resource]

    def load(self, node: Node) -> float:
        """The most used of its resources, as a share; without any, how many workers it has, below 1."""
        shares = [
            self._reserved[node.id][name] / amount
            for name, amount in node.capacity.amounts.items()
            if amount > 0 and self._reserved[node.id][name] > 0
        ]
        count = self.workers(node.id)
        return max(shares, default=0.0) + count / (count + 1000.0)
