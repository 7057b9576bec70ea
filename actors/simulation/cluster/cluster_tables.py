"""The tables of a cluster in memory: what the statements of the real store do, with the same guards.

Each request is applied at once and as a whole. `now_ms` is the clock of the database, which may jump.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from ...cluster.cluster_messages import (
    BeginRelease,
    Change,
    Changed,
    ClusterRead,
    DeclareLost,
    GiveBack,
    Joined,
    JoinNode,
    JoinRefused,
    KeepTenure,
    NoteUnplaced,
    PlaceWorker,
    PutWish,
    ReadCluster,
    RemoveWish,
    Renew,
    RenewalRefused,
    Renewed,
    SetNodeState,
    WantWorker,
)
from ...cluster.facts.cases import GiveRuling, Overrule
from ...cluster.facts.nodes import Node, NodeState
from ...cluster.facts.tenures import Assignment, Tenure, TenureEnd, TenurePhase
from ...cluster.facts.wishes import Wanted, Wish
from ...cluster.rules.fencing_tokens import next_epoch
from ...cluster.rules.quorum import may_be_declared_lost
from ...cluster.rules.tenure_counters import late_restarts, merged
from .suspect_tables import SuspectTables


class ClusterTables:
    """Nodes, wishes, assignments and tenures."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.wishes: dict[str, Wish] = {}
        self.assignments: dict[str, Assignment] = {}
        self.tenures: dict[str, dict[int, Tenure]] = {}
        """By worker and epoch."""
        self.held_by: dict[str, dict[str, Assignment]] = {}
        """The assignments of each node."""
        self.suspects = SuspectTables(self)
        self._epochs: dict[str, int] = {}
        """Of workers that were removed: if one is added again, its epochs continue."""
        self._changes: dict[type, Callable[[Any, int], bool]] = {
            DeclareLost: self._declare_lost,
            PlaceWorker: self._place,
            BeginRelease: self._begin_release,
            GiveBack: self._give_back,
            NoteUnplaced: self._note_unplaced,
            SetNodeState: self._set_node_state,
            GiveRuling: self.suspects.give,
            Overrule: self.suspects.overrule,
            PutWish: self._put_wish,
            WantWorker: self._want,
            RemoveWish: self._remove_wish,
        }

    # ── agents ───────────────────────────────────────────────────────────────────────────

    def join(self, request: JoinNode, now_ms: int) -> Joined | JoinRefused:
        """Begin a new life of a node."""
        known = self.nodes.get(request.node.id)
        if reason := self._join_refusal(request, known, now_ms):
            return JoinRefused(reason, now_ms)
        if known is None:
            node = replace(request.node, life=request.life, incarnation=1)
        elif known.life == request.life:
            node = known
        else:
            state = known.held if not known.state.is_member else known.state
            node = replace(
                request.node,
                life=request.life,
                incarnation=known.incarnation + 1,
                state=state,
                state_reason=known.state_reason,
                held=known.held,
                renewals=known.renewals,
                lease_until_ms=known.lease_until_ms,
                testified_at_wall_ms=known.testified_at_wall_ms,
                members=known.members,
                drain_until_ms=known.drain_until_ms,
            )
        self.nodes[node.id] = node
        held = tuple(self.held_by.get(node.id, {}).values())
        living = tuple(each for each in self.nodes.values() if each.state.is_member)
        return Joined(
            node=node, now_ms=now_ms, living=living, assignments=held, tenures=self._tenures_of(held)
        )

    def _join_refusal(self, request: JoinNode, known: Node | None, now_ms: int) -> str:
        machine = request.node
        if request.not_after_ms is not None and now_ms > request.not_after_ms:
            return "the request was late"
        if any(
            each.name == machine.name and each.id != machine.id and each.state.is_member
            for each in self.nodes.values()
        ):
            return f"another machine is called {machine.name} in this cluster"
        if known is None or known.boot_id in ("", machine.boot_id) or not known.state.is_member:
            return ""
        if known.lease_until_ms > now_ms:
            holder = f"another machine holds the lease of node {machine.name}"
            return f"{holder}: two machines must not share a state directory"
        return ""

    def renew(self, request: Renew, now_ms: int) -> Renewed | RenewalRefused:
        """Extend a lease."""
        node = self.nodes.get(request.node_id)
        reason = "the node is unknown" if node is None else self.refusal(node, request, now_ms)
        if node is None or reason:
            return RenewalRefused(
                number=request.number,
                now_ms=now_ms,
                state=None if node is None else node.state,
                incarnation=0 if node is None else node.incarnation,
                reason=reason,
            )
        node = replace(
            node,
            renewals=request.number,
            members=request.members,
            lease_until_ms=self.lease_until(node, request, now_ms),
            testified_at_wall_ms=self.testified_at(node, request, now_ms),
        )
        self.nodes[node.id] = node
        held = tuple(self.held_by.get(node.id, {}).values())
        return Renewed(
            number=request.number,
            now_ms=now_ms,
            lease_until_ms=node.lease_until_ms,
            testified_at_wall_ms=node.testified_at_wall_ms,
            state=node.state,
            living=tuple(each for each in self.nodes.values() if each.state.is_member),
            assignments=held,
            wishes=tuple(self.wishes[each.component_id] for each in held if each.component_id in self.wishes),
            tenures=self._tenures_of(held),
        )

    def refusal(self, node: Node, request: Renew, now_ms: int) -> str:
        """Why a renewal is not applied; empty if it is."""
        if node.incarnation != request.incarnation:
            return "a later life of this node has joined"
        if not node.state.is_member:
            return node.state_reason or f"the node is {node.state.value}"
        if node.renewals >= request.number:
            return "a later renewal was applied before it"
        return self.lateness(request, now_ms)

    def lateness(self, request: Renew, now_ms: int) -> str:
        """Whether a renewal arrives after its validity."""
        return "the renewal is late" if now_ms > request.not_after_ms else ""

    def lease_until(self, node: Node, request: Renew, now_ms: int) -> int:
        """The end of the lease, which is never set back."""
        return max(node.lease_until_ms, now_ms + request.lease_ms)

    def testified_at(self, node: Node, request: Renew, now_ms: int) -> int:
        """The time of the last testimony: never later than its author knows."""
        return max(node.testified_at_wall_ms, now_ms) if request.testify else node.testified_at_wall_ms

    def _tenures_of(self, held: tuple[Assignment, ...]) -> tuple[Tenure, ...]:
        return tuple(
            tenure for each in held for _, tenure in sorted(self.tenures.get(each.component_id, {}).items())
        )

    # ── coordinators ─────────────────────────────────────────────────────────────────────

    def read(self, request: ReadCluster, now_ms: int, leads: bool) -> ClusterRead:
        """Everything in one moment; the nodes only for a reader that does not lead."""
        known = self.tenures.values() if leads else ()
        return ClusterRead(
            number=request.number,
            leads=leads,
            now_ms=now_ms,
            nodes=tuple(sorted(self.nodes.values(), key=lambda each: (each.name, each.id))),
            wishes=tuple(self.wishes.values()) if leads else (),
            assignments=tuple(self.assignments.values()) if leads else (),
            tenures=tuple(each[max(each)] for each in known if each),
            rulings=self.suspects.latest() if leads else (),
            lives=self.suspects.recent(now_ms) if leads and request.judges else (),
            judged=leads and request.judges,
        )

    def change(self, change: Change, now_ms: int) -> Changed:
        """Try one guarded statement."""
        if isinstance(change, KeepTenure):
            return Changed(change=change, applied=True, late=self._keep_tenure(change))
        applied = self._changes[type(change)](change, now_ms)
        known = self.assignments.get(getattr(change, "component_id", ""))
        return Changed(change=change, applied=applied, assignments=() if known is None else (known,))

    def _declare_lost(self, change: DeclareLost, now_ms: int) -> bool:
        node = self.nodes.get(change.node_id)
        if node is None or not node.state.is_member or not self.is_silent(node, change, now_ms):
            return False
        if not self.is_outvoted(node):
            return False
        held = node.state if node.state is not NodeState.LOST else node.held
        lost = replace(node, state=NodeState.LOST, held=held, state_reason=change.reason)
        self.nodes[node.id] = lost
        for each in [*self.held_by.get(node.id, {}).values()]:
            self._end_tenure(each, now_ms, TenureEnd.LOST)
            reason = f"node {node.name} is lost: {change.reason}"
            self._assign(
                replace(
                    each,
                    node_id=None,
                    phase=TenurePhase.UNPLACED,
                    reason=reason,
                    since_ms=now_ms,
                    target=None,
                )
            )
        return True

    def is_silent(self, node: Node, change: DeclareLost, now_ms: int) -> bool:
        """Whether the row is as the author saw it, and its lease is over."""
        unchanged = (node.incarnation, node.renewals) == (change.incarnation, change.renewals)
        return unchanged and node.lease_until_ms < now_ms

    def is_outvoted(self, node: Node) -> bool:
        """Whether enough members testified after the lease that the others are not a majority."""
        witnesses = [
            each.id for each in self.nodes.values() if each.testified_at_wall_ms > node.lease_until_ms
        ]
        return may_be_declared_lost(node.id, node.members, witnesses)

    def _place(self, change: PlaceWorker, now_ms: int) -> bool:
        known, node = self.assignments.get(change.component_id), self.nodes.get(change.node_id)
        if known is None or node is None or not self.is_free(known, change):
            return False
        if not self.takes(node, change, now_ms):
            return False
        epoch = next_epoch(known.epoch, now_ms)
        placed = replace(
            known,
            node_id=node.id,
            epoch=epoch,
            phase=TenurePhase.PLACED,
            reason=change.reason,
            since_ms=now_ms,
            target=None,
        )
        self._assign(placed)
        return True

    def is_free(self, known: Assignment, change: PlaceWorker) -> bool:
        """Whether the worker has no node, and was not placed since the author read it."""
        return known.node_id is None and known.epoch == change.epoch

    def takes(self, node: Node, change: PlaceWorker, now_ms: int) -> bool:
        """Whether a node may get a worker: it is up, in the life that the author knows, and has a lease."""
        is_known = node.incarnation == change.incarnation and node.lease_until_ms > now_ms
        has_canary = node.state is NodeState.PAROLED and bool(self.held_by.get(node.id))
        return node.state.takes_workers and is_known and not has_canary

    def _begin_release(self, change: BeginRelease, now_ms: int) -> bool:
        known = self.assignments.get(change.component_id)
        if known is None or known.epoch != change.epoch or known.phase is not TenurePhase.PLACED:
            return False
        self._assign(
            replace(
                known,
                phase=TenurePhase.RELEASING,
                reason=change.reason,
                since_ms=now_ms,
                target=change.target,
            )
        )
        return True

    def _give_back(self, change: GiveBack, now_ms: int) -> bool:
        known = self.assignments.get(change.component_id)
        if known is None or (known.epoch, known.node_id) != (change.epoch, change.node_id):
            return False
        self._keep_tenure(KeepTenure(change.tenure))
        self._end_tenure(known, now_ms, TenureEnd.RELEASED)
        refused = {**known.refused, change.node_id: change.refused} if change.refused else known.refused
        freed = replace(
            known, node_id=None, phase=TenurePhase.UNPLACED, reason=change.reason, since_ms=now_ms
        )
        self._assign(replace(freed, refused=refused))
        return True

    def _note_unplaced(self, change: NoteUnplaced, now_ms: int) -> bool:
        known = self.assignments.get(change.component_id)
        if known is None or known.node_id is not None or known.epoch != change.epoch:
            return False
        self._assign(replace(known, reason=change.reason))
        return True

    def _keep_tenure(self, change: KeepTenure) -> int:
        news = change.tenure
        known = self.tenures.setdefault(news.component_id, {})
        before = known.get(news.epoch)
        after = known[news.epoch] = merged(before, news)
        if after.done_ms is not None and (before is None or before.done_ms is None):
            self._finish_task(after)
        return late_restarts(before, after)

    def _finish_task(self, tenure: Tenure) -> None:
        """Want a task no longer that is done under its latest epoch."""
        wish, known = self.wishes.get(tenure.component_id), self.assignments.get(tenure.component_id)
        is_latest = known is not None and known.epoch == tenure.epoch
        if wish is not None and wish.once and is_latest and wish.wanted in (Wanted.RUN, Wanted.PAUSE):
            self.wishes[wish.component_id] = replace(wish, wanted=Wanted.DONE)

    def _set_node_state(self, change: SetNodeState, now_ms: int) -> bool:
        node = self.nodes.get(change.node_id)
        if node is None or node.state not in change.only_from:
            return False
        if change.state is NodeState.LEFT and self.held_by.get(node.id):
            return False
        held = change.state if change.state.is_member else node.held
        self.nodes[node.id] = replace(
            node,
            state=change.state,
            held=held,
            state_reason=change.reason,
            state_by=change.by,
            drain_until_ms=None if change.deadline_ms is None else now_ms + change.deadline_ms,
        )
        return True

    def _put_wish(self, change: PutWish, now_ms: int) -> bool:
        wish = change.wish
        before = self.wishes.get(wish.component_id)
        if before is not None:
            wish = replace(wish, revision=before.revision + (before.spec != wish.spec))
            if (before.wanted, wish.wanted, before.spec) == (Wanted.DONE, Wanted.RUN, wish.spec):
                wish = replace(wish, wanted=Wanted.DONE)
        self.wishes[wish.component_id] = wish
        if not wish.is_template:
            known = self.assignments.get(wish.component_id)
            epoch = self._epochs.pop(wish.component_id, 0)
            known = known or Assignment(component_id=wish.component_id, epoch=epoch, since_ms=now_ms)
            self._assign(replace(known, refused={}))
        return True

    def _want(self, change: WantWorker, now_ms: int) -> bool:
        wish = self.wishes.get(change.component_id)
        if wish is None:
            return False
        self.wishes[wish.component_id] = replace(wish, wanted=change.wanted)
        return True

    def _remove_wish(self, change: RemoveWish, now_ms: int) -> bool:
        known = self.assignments.get(change.component_id)
        if known is not None and known.node_id is not None:
            return False
        if known is not None:
            self._epochs[change.component_id] = known.epoch
            del self.assignments[change.component_id]
        return self.wishes.pop(change.component_id, None) is not None

    def _assign(self, assignment: Assignment) -> None:
        before = self.assignments.get(assignment.component_id)
        if before is not None and before.node_id is not None:
            self.held_by[before.node_id].pop(assignment.component_id, None)
        self.assignments[assignment.component_id] = assignment
        if assignment.node_id is not None:
            self.held_by.setdefault(assignment.node_id, {})[assignment.component_id] = assignment

    def _end_tenure(self, assignment: Assignment, now_ms: int, how: TenureEnd) -> None:
        known = self.tenures.get(assignment.component_id, {})
        tenure = known.get(assignment.epoch)
        if tenure is not None and tenure.how is None:
            known[assignment.epoch] = replace(tenure, ended_ms=now_ms, how=how)
