"""The shared database as each node reaches it.

    node ─ request, delayed ─▶ applied ─ answer, delayed ─▶ node
             x cut, or down          x cut, or lost: the change was made, and its author does not know

A request that is under way when its author dies, or gives up, is applied all the same; so may be one that
was sent into a cut cable: the kernel of its author sends it again when the cable is back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...cluster.cluster_messages import (
    Change,
    DeclareLost,
    GiveBack,
    JoinNode,
    PlaceWorker,
    ReadCluster,
    RemoveWish,
    Renew,
    StoreAway,
)
from ...cluster.courier_messages import JournalKept, ShipJournal
from ...cluster.facts.cases import GiveRuling, Overrule
from ...cluster.facts.wishes import Wanted, Wish
from ...ports import Receiver
from ..simulation_runtime import EPOCH_MS
from .cluster_moves import DATABASE
from .cluster_rules import Freed, Placed, Ruled
from .cluster_tables import ClusterTables

if TYPE_CHECKING:
    from .cluster_run import ClusterRun
    from .virtual_node import VirtualNode

TIMEOUT_S = 2.0
RESENT_SHARE = 0.3
RESENT_S = 20.0
"""Which share of the requests that met a cut cable is sent again by the kernel, and for how long."""
LEADS_S = 1.5
"""How long the lock of a leader that no longer reads is kept."""


class VirtualDatabase:
    """The tables, and the faults between them and the nodes."""

    def __init__(self, run: ClusterRun) -> None:
        self._run = run
        self.tables = ClusterTables()
        self.is_up = True
        self.offset_ms = 0
        """How far its clock was set."""
        self.takes_s = 0.0
        self.lost_share = 0.0
        self._leader: tuple[str, float] = ("", 0.0)

    def now_ms(self) -> int:
        """The clock of the database."""
        return EPOCH_MS + self.offset_ms + round(self._run.clock.now * 1000)

    def leads(self, node_id: str) -> bool:
        """Whether a reader gets, or has, the lock of the leader."""
        leader, since = self._leader
        now = self._run.clock.now
        if leader != node_id and now - since < LEADS_S:
            return self._run.scenario.all_lead
        self._leader = node_id, now
        return True

    def delay(self) -> float:
        """How long one way takes."""
        return self._run.delay(self.takes_s)

    def change(self, change: Change) -> Any:
        """Apply a change, and add to the history what it did."""
        tables, run = self.tables, self._run
        before = dict(tables.assignments) if isinstance(change, DeclareLost) else tables.assignments
        known = before.get(getattr(change, "component_id", ""))
        answer = tables.change(change, self.now_ms())
        if not answer.applied:
            return answer
        if isinstance(change, PlaceWorker):
            placed, node = tables.assignments[change.component_id], tables.nodes[change.node_id]
            run.note(Placed(run.clock.now, change.component_id, placed.epoch, node.id, node.state.value))
        elif isinstance(change, GiveBack) and known is not None:
            run.note(Freed(run.clock.now, known.component_id, known.epoch, known.reason))
        elif isinstance(change, DeclareLost):
            for each in before.values():
                if each.node_id == change.node_id:
                    run.note(Freed(run.clock.now, each.component_id, each.epoch, "lost"))
        elif isinstance(change, GiveRuling | Overrule):
            kind = str(tables.suspects.rulings[change.node_id][-1].case.__struct_config__.tag)
            is_last = any(self._needs(wish, change.node_id) for wish in tables.wishes.values())
            run.note(Ruled(run.clock.now, change.node_id, kind, is_last))
        elif isinstance(change, RemoveWish):
            run.gone(change.component_id)
        return answer

    def _needs(self, wish: Wish, node_id: str) -> bool:
        """Whether a worker has the labels of this node only."""
        wanted = wish.place.labels.items()
        fitting = [node.id for node in self.tables.nodes.values() if wanted <= node.labels.items()]
        return wish.wanted is Wanted.RUN and bool(wanted) and fitting == [node_id]


class VirtualReach:
    """The ports of one life of a node's agent: what it asks travels, and may get lost."""

    def __init__(self, run: ClusterRun, node: VirtualNode) -> None:
        self._run, self._node, self._life = run, node, node.life
        self._database = run.database

    def join(self, request: JoinNode, receiver: Receiver) -> None:
        """Begin a new life of a node."""
        self._ask(request, lambda: self._database.tables.join(request, self._database.now_ms()), receiver)

    def renew(self, request: Renew, receiver: Receiver) -> None:
        """Extend a lease."""
        self._ask(request, lambda: self._database.tables.renew(request, self._database.now_ms()), receiver)

    def read(self, request: ReadCluster, receiver: Receiver) -> None:
        """Read the state of the cluster."""
        self._ask(request, lambda: self._read(request), receiver)

    def change(self, change: Change, receiver: Receiver) -> None:
        """Try one guarded statement."""
        self._ask(change, lambda: self._database.change(change), receiver)

    def shipped_up_to(self, node_id: str, receiver: Receiver) -> None:
        """Read how far the journal of a node was shipped."""
        suspects = self._database.tables.suspects
        self._ask(node_id, lambda: JournalKept(suspects.shipped[node_id]), receiver)

    def ship(self, request: ShipJournal, receiver: Receiver) -> None:
        """Keep a page of the journal of a node."""
        self._ask(request, lambda: self._ship(request), receiver)

    def _ship(self, request: ShipJournal) -> JournalKept:
        now_ms = self._database.now_ms()
        return self._database.tables.suspects.ship(request, now_ms - self._run.clock.wall_ms(), now_ms)

    def _read(self, request: ReadCluster) -> Any:
        leads = self._database.leads(self._node.id)
        return self._database.tables.read(request, self._database.now_ms(), leads)

    def _ask(self, request: object, apply: Callable[[], Any], receiver: Receiver) -> None:
        run, database = self._run, self._database
        if not self._is_reached():
            away = StoreAway(request=request, reason="refused")
            run.later(TIMEOUT_S / 4, lambda: self._tell(receiver, away))
            if run.chance.random() < RESENT_SHARE:
                self._resend(apply, run.clock.now + RESENT_S)
            return
        due = run.clock.now + TIMEOUT_S

        def arrive() -> None:
            if not database.is_up:
                self._away(receiver, request, due)
                return
            answer = apply()
            lost = database.lost_share and run.chance.random() < database.lost_share
            back = run.clock.now + database.delay()
            if lost or back > due:
                self._away(receiver, request, due)
            else:
                run.at(back, lambda: answered(answer))

        def answered(answer: Any) -> None:
            if self._is_reached():
                self._tell(receiver, answer)
            else:
                self._away(receiver, request, due)

        run.later(database.delay(), arrive)

    def _is_reached(self) -> bool:
        return self._database.is_up and not self._run.is_cut(self._node.id, DATABASE)

    def _resend(self, apply: Callable[[], Any], until: float) -> None:
        """Deliver a request whose author has given up, once the way is free."""
        run = self._run
        if self._is_reached():
            apply()
        elif run.clock.now < until and not self._node.is_off:
            run.later(run.chance.uniform(0.05, 0.5), lambda: self._resend(apply, until))

    def _away(self, receiver: Receiver, request: object, due: float) -> None:
        run = self._run
        answer = StoreAway(request=request, reason="no answer")
        run.at(max(due, run.clock.now), lambda: self._tell(receiver, answer))

    def _tell(self, receiver: Receiver, message: object) -> None:
        if self._node.life == self._life:
            receiver.tell(message)
            self._node.wake()
