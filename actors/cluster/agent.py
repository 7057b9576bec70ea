"""The Agent of a node: it keeps the node's lease, and has the workers run that are assigned to it.

It owns the lease of this life (`rules.lease`), the promises it got (`rules.promise_exchange`) and what runs
here under which epoch (`rules.holdings`). It tells the store (joins, renewals, workers given back), its
peers (promises) and the host of the workers; the guardian learns every end of the right before a worker runs
under it. When the right ends, the workers are killed; when the node was declared lost, it joins as a new life
as soon as the last of them is gone. It ends with its system.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from loguru import logger
from msgspec.structs import replace

from ..facts.node_figures import NodeFigures
from ..messages import ClusterEvent, OutageHeld
from ..ports import Clock, Runtime, Timer
from ..runtime.resilient_actor import ResilientActor
from ..spec.deployment.place_policy import OnPartition
from .cluster_messages import (
    AgentMessage,
    Changed,
    GiveBack,
    JoinDue,
    Joined,
    JoinNode,
    JoinRefused,
    JournalShipped,
    LeaseDue,
    RenewalRefused,
    RenewDue,
    Renewed,
    StartTenure,
    StoreAway,
    TenureStopped,
    WorkerRefused,
)
from .cluster_ports import ClusterStore, Host, Peers
from .facts.nodes import Node, NodeState
from .facts.promises import PromiseAsked, PromiseGot
from .facts.tenures import Assignment, Tenure
from .facts.wishes import Wanted, Wish
from .rules import holdings as held
from .rules import lease as leases
from .rules import promise_exchange
from .rules.holdings import Holdings
from .rules.lease import Lease, LeaseTerms
from .rules.tenure_counters import carried, merged, refunded

JOIN_AGAIN_S = 1.0


class Agent(ResilientActor):
    """Holds the lease of this node and runs what is assigned to it."""

    def __init__(
        self,
        node: Node,
        terms: LeaseTerms,
        *,
        runtime: Runtime,
        store: ClusterStore,
        peers: Peers,
        host: Host,
        nonce: Callable[[], str],
        clock: Clock | None = None,
        announce: Callable[[ClusterEvent], None] = lambda event: None,
        figures: NodeFigures | None = None,
    ) -> None:
        """Take the ports; `nonce` returns a new text that cannot be guessed.

        `clock` must continue while the machine sleeps, or the right would last longer than the lease.
        """
        super().__init__()
        self._node, self._terms = node, terms
        self._runtime, self._store, self._peers, self._host = runtime, store, peers, host
        self._nonce, self._clock = nonce, clock or runtime.clock
        self._announce, self._figures = announce, figures or NodeFigures()
        self._is_held = False
        """Whether promises keep the workers running, and it has said so."""
        self._began, self._life = self._clock.monotonic(), nonce()
        self._heard: tuple[int, float] | None = None
        """The time of the database in an answer, and when that arrived."""
        self._has_left = False
        self._is_shipped = False
        """Whether the counters of former lives are in the database: what is placed here brings them along."""
        self._lease: Lease | None = None
        self._rounds: promise_exchange.Rounds = ()
        self._holdings = Holdings()
        self._addresses: Mapping[str, str] = {}
        self._tenures: dict[tuple[str, int], Tenure] = {}
        """Of workers that were stopped here: newer than what the database says."""
        self._refusals: dict[tuple[str, int], str] = {}
        """Why this node cannot run a worker, until the database has heard it."""
        self._kept: dict[str, Wish] = {}
        """The wishes of what runs here."""
        self._refunded: dict[tuple[str, int], int] = {}
        """How many restarts of a worker did not count when it began here, or by now."""
        self._last: Renewed | None = None
        self._due: Timer | None = None
        self._renewal: Timer | None = None

    def recover(self) -> None:
        """Continue with the state that the last complete handler left; renewals and deadlines continue."""
        self._renew_later()
        self._guard()

    def handle(self, message: AgentMessage) -> None:
        """Take one message."""
        # First of all: an agent that was frozen finds its deadline past, and the guardian has acted on it.
        self._fence_if_due()
        match message:
            case JournalShipped():
                self._is_shipped = True
                self._join()
            case JoinDue():
                self._join()
            case RenewDue(life=life):
                self._renew(life)
            case LeaseDue():
                pass
            case Joined():
                self._joined(message)
            case JoinRefused():
                self._join_refused(message)
            case Renewed():
                self._renewed(message)
            case RenewalRefused():
                self._refused(message)
            case StoreAway(request=request):
                self._unanswered(request)
            case PromiseAsked():
                self._asked(message)
            case PromiseGot():
                self._got(message)
            case TenureStopped():
                self._stopped(message)
            case WorkerRefused():
                self._worker_refused(message)
            case Changed(change=GiveBack(component_id=id_, epoch=epoch), applied=True):
                self._refusals.pop((id_, epoch), None)
            case Changed():
                pass  # The next renewal shows what came of it.
            case _:
                self.unexpected(message)

    # ── joining ──────────────────────────────────────────────────────────────────────────

    def _join(self) -> None:
        may_join = self._is_shipped and not self._has_left
        if may_join and self._lease is None and not self._must_end():
            # The first request only learns the time of the database: it is late whenever it arrives. Without
            # a limit, one that a cut cable held up would end the life that runs by then.
            not_after_ms = 0
            if self._heard is not None:
                database_ms, at = self._heard
                since_s = self._clock.monotonic() - at
                not_after_ms = database_ms + round((since_s + self._terms.validity_s) * 1000)
            request = JoinNode(node=self._node, life=self._life, not_after_ms=not_after_ms)
            self._store.join(request, self.actor_ref)

    def _joined(self, answer: Joined) -> None:
        if self._lease is not None or answer.node.life != self._life:
            return
        self._heard = answer.now_ms, self._clock.monotonic()
        self._lease = leases.joined(answer, self._began, self._clock.monotonic())
        self._addresses = {node.id: node.address for node in answer.living}
        self._renew(self._life)

    def _join_refused(self, answer: JoinRefused) -> None:
        is_first, self._heard = self._heard is None, (answer.now_ms, self._clock.monotonic())
        if is_first:
            self._join()
            return
        logger.error("cluster: node {} may not join: {}", self._node.name, answer.reason)
        self._later(JOIN_AGAIN_S, JoinDue())

    def _begin_new_life(self) -> None:
        """The former life is over: forget its lease, and join when none of its workers is left."""
        if self._lease is not None:
            self._heard = self._lease.database_ms, self._lease.heard_at
        self._lease, self._rounds, self._last = None, (), None
        self._began, self._life = self._clock.monotonic(), self._nonce()
        self._join()

    # ── the lease ────────────────────────────────────────────────────────────────────────

    def _renew(self, life: str) -> None:
        if self._lease is None or life != self._life:
            return
        now = self._clock.monotonic()
        self._renew_later()
        if promise_exchange.asks(self._lease, self._terms, now):
            self._ask(self._lease, now)
        self._lease, request = leases.renewal(self._lease, self._terms, now)
        self._store.renew(request, self.actor_ref)

    def _renew_later(self) -> None:
        if self._renewal is not None:
            self._renewal.cancel()
        self._renewal = self._later(self._terms.renew_s, RenewDue(self._life))

    def _renewed(self, answer: Renewed) -> None:
        if self._lease is None:
            return
        now = self._clock.monotonic()
        after = leases.renewed(self._lease, self._terms, answer, now)
        if after is self._lease:
            return
        self._lease, self._last, self._is_held = after, answer, False
        self._figures.renewals.took(now - (after.sent_at or now))
        self._addresses = {node.id: node.address for node in answer.living}
        self._guard()
        self._act(answer)

    def _refused(self, answer: RenewalRefused) -> None:
        if self._lease is None:
            return
        self._lease = leases.refused(self._lease, answer, self._clock.monotonic())
        if self._lease.over:
            logger.warning("cluster: node {} has no lease: {}", self._node.name, self._lease.over)
            self._fence()
            # A node that has left joins again when its agent is started again.
            self._has_left = answer.state is NodeState.LEFT
            self._begin_new_life()

    def _unanswered(self, request: object) -> None:
        if isinstance(request, JoinNode):
            self._later(JOIN_AGAIN_S, JoinDue())

    def _guard(self) -> None:
        """Tell the guardian the end of the right, and look at it then."""
        end = None if self._lease is None else leases.ends_at(self._lease)
        self._host.guard(end)
        if self._due is not None:
            self._due.cancel()
        if end is not None:
            self._due = self._later(end - self._clock.monotonic(), LeaseDue())

    def _fence_if_due(self) -> None:
        if self._lease is not None and not leases.may_run(self._lease, self._clock.monotonic()):
            self._fence()

    def _fence(self) -> None:
        """Kill what may not run without a lease."""
        if self._must_end():
            self._host.fence()

    def _must_end(self) -> bool:
        """Whether anything runs here that may not run without a lease."""
        places = (self._kept[component_id].place for component_id in self._holdings.running)
        return any(place.on_partition is not OnPartition.KEEP for place in places)

    # ── promises ─────────────────────────────────────────────────────────────────────────

    def _ask(self, lease: Lease, now: float) -> None:
        before = leases.ends_at(lease)
        self._lease, self._rounds, requests = promise_exchange.ask(
            lease, self._rounds, self._terms, self._nonce(), now
        )
        for request in requests:
            self._peers.send(request.member, self._addresses.get(request.member, ""), request)
        self._extended(before)

    def _asked(self, asked: PromiseAsked) -> None:
        if self._lease is None:
            return
        self._lease, answer = promise_exchange.answered(
            self._lease, self._terms, asked, self._clock.monotonic()
        )
        self._peers.send(asked.asker, self._addresses.get(asked.asker, ""), answer)

    def _got(self, answer: PromiseGot) -> None:
        if self._lease is None:
            return
        before = leases.ends_at(self._lease)
        self._lease, self._rounds = promise_exchange.got(self._lease, self._rounds, self._terms, answer)
        self._extended(before)

    def _extended(self, before: float | None) -> None:
        """If the right lasts longer now, the guardian is told, and what was killed may start again."""
        if self._lease is not None and leases.ends_at(self._lease) != before:
            self._guard()
            self._say_held(self._lease)
            if self._last is not None:
                self._act(self._last)

    def _say_held(self, lease: Lease) -> None:
        """Say once in an outage that its workers run on by promises alone, if it has any."""
        is_over = lease.right_until is None or self._clock.monotonic() >= lease.right_until
        if is_over and not self._is_held and self._holdings.running:
            self._is_held = True
            agreed = max((len(each.promised) for each in self._rounds), default=0) + 1
            listed = {member for members in leases.possible_members(lease) for member in members}
            self._announce(OutageHeld(self._node.name, agreed, len(listed)))

    # ── workers ──────────────────────────────────────────────────────────────────────────

    def _act(self, answer: Renewed) -> None:
        """Start, change, stop and give back what the assignments say."""
        may_run = self._lease is not None and leases.may_run(self._lease, self._clock.monotonic())
        wishes = {wish.component_id: wish for wish in answer.wishes}
        overdue = any(node.id == self._node.id and node.is_overdue(answer.now_ms) for node in answer.living)
        todo = held.todo(self._holdings, answer.assignments, may_run, overdue=overdue)
        for component_id, epoch in todo.stop:
            self._host.stop(component_id, epoch)
        for component_id, epoch in todo.kill:
            self._host.kill(component_id, epoch)
        for assignment in todo.give_back:
            self._give_back(assignment, answer)
        for component_id, epoch in self._holdings.running.items():
            self._change(wishes.get(component_id))
            self._refund(component_id, epoch, _tenures_of(answer, component_id))
        found = [(wishes[each.component_id], each) for each in todo.start if each.component_id in wishes]
        for wish, assignment in sorted(found, key=lambda each: len(each[0].beside)):
            if wish.wanted is not Wanted.DONE:
                self._start(wish, assignment, answer)

    def _start(self, wish: Wish, assignment: Assignment, answer: Renewed) -> None:
        key = assignment.component_id, assignment.epoch
        tenures = _tenures_of(answer, assignment.component_id)
        ours = next((each for each in tenures if each.epoch == assignment.epoch), None)
        if (ended := self._tenures.get(key)) is not None:  # killed for lack of the right, under this epoch
            ours = merged(ours, ended)
            tenures = (*(each for each in tenures if each.epoch != assignment.epoch), ours)
        if wish.once and ours is not None and ours.done_ms is not None:
            return  # The cluster will hear that the task is done.
        self._holdings = held.started(self._holdings, assignment.component_id, assignment.epoch)
        self._kept[assignment.component_id] = wish
        self._refunded[key] = refunded(tenures)
        order = StartTenure(wish=wish, assignment=assignment, known=carried(tenures), tenure=ours)
        self._host.start(order)

    def _change(self, wish: Wish | None) -> None:
        if wish is not None and wish != self._kept[wish.component_id]:
            self._kept[wish.component_id] = wish
            self._host.change(wish)

    def _refund(self, component_id: str, epoch: int, tenures: tuple[Tenure, ...]) -> None:
        """Former nodes may be convicted while the worker runs here."""
        key, now = (component_id, epoch), refunded(tenures)
        if (more := now - self._refunded.get(key, now)) > 0:
            self._refunded[key] = now
            self._host.refund(component_id, epoch, more)

    def _stopped(self, news: TenureStopped) -> None:
        self._holdings = held.stopped(self._holdings, news.component_id, news.epoch)
        self._tenures[news.component_id, news.epoch] = news.tenure
        self._goes_on()

    def _worker_refused(self, news: WorkerRefused) -> None:
        log = logger.bind(worker=news.component_id)
        log.error("cluster: node {} cannot run {}: {}", self._node.name, news.component_id, news.reason)
        self._holdings = held.stopped(self._holdings, news.component_id, news.epoch)
        self._refusals[news.component_id, news.epoch] = news.reason
        if (last := self._last) is not None:
            for assignment in last.assignments:
                if (assignment.component_id, assignment.epoch) == (news.component_id, news.epoch):
                    self._give_back(assignment, last)
        self._goes_on()

    def _goes_on(self) -> None:
        """A worker has ended: another may start, or the agent may join when it was the last."""
        if self._lease is None:
            self._join()
        elif self._last is not None:
            self._act(self._last)

    def _give_back(self, assignment: Assignment, answer: Renewed) -> None:
        key = assignment.component_id, assignment.epoch
        refused = self._refusals.get(key, "")
        known = (each for each in _tenures_of(answer, key[0]) if each.epoch == key[1])
        tenure = self._tenures.get(key) or next(known, None)
        tenure = tenure or Tenure(component_id=key[0], epoch=key[1], node_id=self._node.id)
        self._holdings = held.given_back(self._holdings, *key)
        change = GiveBack(
            node_id=self._node.id,
            component_id=key[0],
            epoch=key[1],
            tenure=replace(tenure, ended_ms=tenure.ended_ms or answer.now_ms),
            reason=refused or assignment.reason,
            refused=refused,
        )
        self._store.change(change, self.actor_ref)

    def _later(self, delay_s: float, message: Any) -> Timer:
        return self._runtime.timers.after(max(0.0, delay_s), self.actor_ref, message)


def _tenures_of(answer: Renewed, component_id: str) -> tuple[Tenure, ...]:
    return tuple(each for each in answer.tenures if each.component_id == component_id)
