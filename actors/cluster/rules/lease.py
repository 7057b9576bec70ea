"""Pure: the lease of one node, as its own agent keeps it. Times are seconds of the agent's clock.

    joined ─ the first renewal is answered ─▶ held ─ no answer for 2 intervals ─▶ away
    held ◀─ a renewal is answered ─ away ─ a majority promises ─▶ away, but held on
    held, away ─ the right ends ─▶ the workers are killed ─ a renewal is answered ─▶ held
    any ─ a renewal is refused: lost, or a later life ─▶ over: kill, then join as a new life

The right to run workers ends `lease_s - margin_s` after the last answered renewal was *sent*: the database
counts from later, and a reader who sees the row unchanged counts from later still. The guardian of the node
is told every end, and kills without the agent.

A renewal carries the latest time, by the database's clock, at which it may be applied, and it testifies
unless the node is under a promise, new, or away: an agent that does not know what became of its last
renewals stays silent, so that it can promise soon.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from ..cluster_messages import Joined, Renew, RenewalRefused, Renewed
from ..facts.nodes import NodeState


class LeaseTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The durations of all leases of a cluster."""

    lease_s: float = 3.0
    renew_s: float = 0.5
    margin_s: float = 0.5
    """Between the end of a node's right and the first moment in which another may act on it."""
    promise_s: float = 2.0
    validity_s: float = 1.0

    @property
    def away_s(self) -> float:
        """After so long without an answer the database is away."""
        return 2 * self.renew_s


def terms(lease_s: float) -> LeaseTerms:
    """All durations, in proportion to the lease."""
    return LeaseTerms(
        lease_s=lease_s,
        renew_s=lease_s / 6,
        margin_s=lease_s / 6,
        promise_s=lease_s * 2 / 3,
        validity_s=lease_s / 3,
    )


class Sent(msgspec.Struct, frozen=True):
    """A renewal that is not answered."""

    request: Renew
    at: float


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent knows of its own lease, in one life."""

    node_id: str
    incarnation: int
    began: float
    """When this life began."""
    members: tuple[str, ...] = ()
    """The list of the last answered renewal."""
    living: tuple[str, ...] = ()
    """The list of the next renewal."""
    number: int = 0
    """Of the last renewal that was sent."""
    database_ms: int = 0
    heard_at: float = 0.0
    """The time of the database in its last answer, and when that arrived."""
    sent_at: float | None = None
    """When the last answered renewal was sent; None: none was answered in this life."""
    lease_until_ms: int = 0
    testified_at_wall_ms: int = 0
    pending: tuple[Sent, ...] = ()
    right_until: float | None = None
    held_until: float | None = None
    """How long the promises of a majority hold."""
    promised_until: float | None = None
    """Until when it has promised not to testify."""
    over: str = ""
    """Why this life of the agent has no lease and gets none."""


def joined(answer: Joined, began: float, now: float) -> Lease:
    """A new life: no right, and no memory of what former lives promised.

    Its first renewal lists all members that the join found: a node that listed only itself would be its own
    majority, so the others could not declare it lost if it died before its second renewal.
    """
    return Lease(
        node_id=answer.node.id,
        incarnation=answer.node.incarnation,
        began=began,
        living=tuple(dict.fromkeys((*(node.id for node in answer.living), answer.node.id))),
        number=answer.node.renewals,
        database_ms=answer.now_ms,
        heard_at=now,
        lease_until_ms=answer.node.lease_until_ms,
        testified_at_wall_ms=answer.node.testified_at_wall_ms,
    )


# ── the right ────────────────────────────────────────────────────────────────────────────


def ends_at(lease: Lease) -> float | None:
    """When the right to run workers ends; None if there is none. The guardian is told this."""
    ends = [end for end in (lease.right_until, lease.held_until) if end is not None]
    return max(ends) if ends and not lease.over else None


def may_run(lease: Lease, now: float) -> bool:
    """Whether workers may run."""
    end = ends_at(lease)
    return end is not None and now < end


def is_away(lease: Lease, terms: LeaseTerms, now: float) -> bool:
    """Whether the database has been silent for too long: the node asks for promises, and may give some."""
    return lease.sent_at is None or now - lease.sent_at > terms.away_s


# ── renewals ─────────────────────────────────────────────────────────────────────────────


def may_testify(lease: Lease, terms: LeaseTerms, now: float) -> bool:
    """Whether a renewal may confirm that the node is part of the majority."""
    if now < lease.began + terms.promise_s:
        return False  # A former life may have promised, and this one has forgotten it.
    if lease.promised_until is not None and now < lease.promised_until:
        return False
    return not is_away(lease, terms, now)


def renewal(lease: Lease, terms: LeaseTerms, now: float) -> tuple[Lease, Renew]:
    """The next renewal to send."""
    since_heard_ms = round((now - lease.heard_at) * 1000)
    request = Renew(
        node_id=lease.node_id,
        incarnation=lease.incarnation,
        number=lease.number + 1,
        lease_ms=round(terms.lease_s * 1000),
        members=lease.living,
        testify=may_testify(lease, terms, now),
        not_after_ms=lease.database_ms + since_heard_ms + round(terms.validity_s * 1000),
    )
    kept = tuple(each for each in lease.pending if _matters(each, lease, terms, now))
    return replace(lease, number=request.number, pending=(*kept, Sent(request, now))), request


def _matters(sent: Sent, lease: Lease, terms: LeaseTerms, now: float) -> bool:
    """Whether it could still give a right, or may have stored what the next request does not repeat."""
    is_young = now - sent.at < terms.lease_s
    return is_young or sent.request.testify or sent.request.members not in (lease.members, lease.living)


def renewed(lease: Lease, terms: LeaseTerms, answer: Renewed, now: float) -> Lease:
    """The lease after the answer to a renewal; an answer that arrives after a later one changes nothing."""
    sent = next((each for each in lease.pending if each.request.number == answer.number), None)
    if sent is None or lease.over:
        return lease
    return replace(
        lease,
        members=sent.request.members,
        living=tuple(node.id for node in answer.living),
        database_ms=answer.now_ms,
        heard_at=now,
        sent_at=sent.at,
        lease_until_ms=answer.lease_until_ms,
        testified_at_wall_ms=answer.testified_at_wall_ms,
        pending=tuple(each for each in lease.pending if each.request.number > answer.number),
        right_until=sent.at + terms.lease_s - terms.margin_s,
    )


def refused(lease: Lease, answer: RenewalRefused, now: float) -> Lease:
    """The lease after a refusal: it is over, unless the renewal was only late or out of order."""
    left = tuple(each for each in lease.pending if each.request.number != answer.number)
    lease = replace(lease, database_ms=answer.now_ms, heard_at=now, pending=left)
    if answer.state is None:
        return replace(lease, over="the database knows no such node")
    if answer.incarnation != lease.incarnation:
        return replace(lease, over="a later life of this node has joined")
    if answer.state in (NodeState.LOST, NodeState.LEFT):
        return replace(lease, over=answer.reason or f"the node is {answer.state.value}")
    return lease


# ── what the row may hold ────────────────────────────────────────────────────────────────


def possible_members(lease: Lease) -> tuple[tuple[str, ...], ...]:
    """Every list of members that the row in the database may hold."""
    answered = (lease.members,) if lease.sent_at is not None else ()
    return tuple(dict.fromkeys((*answered, *(each.request.members for each in lease.pending))))


def latest_testimony_ms(lease: Lease) -> int:
    """The latest time of a testimony that the row in the database may hold, or get."""
    sent = (each.request.not_after_ms for each in lease.pending if each.request.testify)
    return max(lease.testified_at_wall_ms, *sent, 0)
