"""The history of the nodes and the rulings on them, in memory: what the statements of the real store do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import zip_longest
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...cluster.courier_messages import JournalKept, ShipJournal
from ...cluster.facts.cases import OWN_STATES, Case, GiveRuling, KeptRuling, Overrule, Suspect, state_under
from ...cluster.facts.node_lives import Fault, NodeLife
from ...cluster.facts.nodes import NodeState
from ...cluster.rules.suspects.attribution import convictions
from ...cluster.rules.suspects.suspicion import lives_since_ms, overruled

if TYPE_CHECKING:
    from .cluster_tables import ClusterTables


class SuspectTables:
    """Lives of processes, and the cases of nodes."""

    def __init__(self, tables: ClusterTables) -> None:
        self._tables = tables
        self.rulings: defaultdict[str, list[KeptRuling]] = defaultdict(list)
        """By node, in their order."""
        self.lives: dict[tuple[str, str, int], NodeLife] = {}
        """By node, worker and generation."""
        self.shipped: defaultdict[str, int] = defaultdict(int)
        """By node: the number of the last event of its journal."""

    # ── history ──────────────────────────────────────────────────────────────────────────

    def ship(self, page: ShipJournal, shift_ms: int, now_ms: int) -> JournalKept:
        """Keep a page of a journal; one that is known changes nothing."""
        self.shipped[page.node_id] = max(self.shipped[page.node_id], page.records[-1].id)
        for life in page.lives:
            self._keep(life, shift_ms)
        if any(life.died for life in page.lives):
            self._attribute(page.node_id, now_ms)
        return JournalKept(page.records[-1].id)

    def _keep(self, news: NodeLife, shift_ms: int) -> None:
        key = news.node_id, news.component_id, news.generation
        ended_ms = None if news.ended_ms is None else news.ended_ms + shift_ms
        known = self.lives.get(key)
        if known is None:
            self.lives[key] = replace(news, began_ms=news.began_ms + shift_ms, ended_ms=ended_ms)
        elif known.ended_ms is None:
            self.lives[key] = replace(news, began_ms=known.began_ms, ended_ms=ended_ms)

    def recent(self, now_ms: int) -> tuple[NodeLife, ...]:
        """The lives by which suspicions are judged."""
        since = lives_since_ms((each.case for each in self.latest()), now_ms)
        found = [life for life in self.lives.values() if life.ended_ms is None or life.ended_ms >= since]
        found.sort(key=lambda life: (life.component_id, life.epoch, life.generation))
        ends = (self._cut(life, after) for life, after in zip_longest(found, found[1:]))
        return tuple(life for life in ends if life.ended_ms is None or life.ended_ms >= since)

    def _cut(self, life: NodeLife, after: NodeLife | None) -> NodeLife:
        next_ms = after.began_ms if after is not None and after.component_id == life.component_id else None
        ends = [at for at in (life.ended_ms, next_ms) if at is not None]
        assigned = self._tables.assignments.get(life.component_id)
        if not ends and (
            assigned is None or (assigned.epoch, assigned.node_id) != (life.epoch, life.node_id)
        ):
            tenure = self._tables.tenures.get(life.component_id, {}).get(life.epoch)
            ends = [life.began_ms if tenure is None else tenure.ended_ms or life.began_ms]
        return replace(life, ended_ms=max(life.began_ms, min(ends))) if ends else life

    # ── rulings ──────────────────────────────────────────────────────────────────────────

    def latest(self) -> tuple[KeptRuling, ...]:
        """The latest ruling on each node."""
        return tuple(given[-1] for _, given in sorted(self.rulings.items()) if given)

    def give(self, change: GiveRuling, now_ms: int) -> bool:
        """Give the next ruling on a node."""
        node = self._tables.nodes.get(change.node_id)
        begins = isinstance(change.case, Suspect)
        if node is None or (begins and node.state is not NodeState.UP):
            return False
        if change.number != len(self.rulings[node.id]) + 1:
            return False
        self._rule(node.id, change.case, change.why, now_ms)
        self._attribute(node.id, now_ms)
        return True

    def overrule(self, change: Overrule, now_ms: int) -> bool:
        """Close the case of a node in an operator's name."""
        if change.node_id not in self._tables.nodes:
            return False
        self._rule(change.node_id, overruled(now_ms / 1000), "an operator", now_ms, change.by)
        return True

    def _rule(self, node_id: str, case: Case, why: str, now_ms: int, by: str = "") -> None:
        given = self.rulings[node_id]
        number = len(given) + 1
        given.append(
            KeptRuling(node_id=node_id, number=number, at_ms=now_ms, case=case, why=why, given_by=by)
        )
        node, state = self._tables.nodes[node_id], state_under(case)
        if node.state in OWN_STATES:
            reason = "" if state is NodeState.UP else why
            self._tables.nodes[node_id] = replace(node, state=state, held=state, state_reason=reason)
        elif not node.state.is_member and node.held in OWN_STATES:
            self._tables.nodes[node_id] = replace(node, held=state)

    def _attribute(self, node_id: str, now_ms: int) -> None:
        """Refund the deaths on a node, if it was convicted for their time."""
        for each in convictions(self.rulings[node_id]):
            until = now_ms if each.until_ms is None else each.until_ms
            for key, life in list(self.lives.items()):
                is_there = life.node_id == node_id and life.died and life.fault is not Fault.NODE
                if is_there and each.since_ms <= (life.ended_ms or 0) <= until:
                    self.lives[key] = replace(life, fault=Fault.NODE)
                    self._refund(life.component_id, life.epoch, node_id, now_ms)

    def _refund(self, component_id: str, epoch: int, node_id: str, now_ms: int) -> None:
        tenure = self._tables.tenures.get(component_id, {}).get(epoch)
        if tenure is None or tenure.node_id != node_id:
            return
        count = sum(_is_refunded(life, component_id, epoch) for life in self._of(node_id))
        self._tables.tenures[component_id][epoch] = replace(
            tenure, refunded=max(tenure.refunded, count), lifted_ms=tenure.lifted_ms or now_ms
        )

    def _of(self, node_id: str) -> Iterable[NodeLife]:
        return (life for life in self.lives.values() if life.node_id == node_id)


def _is_refunded(life: NodeLife, component_id: str, epoch: int) -> bool:
    is_of_it = (life.component_id, life.epoch) == (component_id, epoch)
    return is_of_it and life.died and life.counted and life.fault is Fault.NODE
