"""Pure: how nodes keep each other's leases while the database is away.

    away ─ ask every member ─▶ each that is away too promises not to testify for `promise_s`
         ─ with itself a majority has promised ─▶ it holds for `promise_s`, counted from when it asked

A member refuses if it reaches the database (then the node alone is cut off, and must stop), if it has not
renewed in this life, or if a testimony of its own is, or may become, later than the asker's lease: that
testimony could already count against the asker.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from ..facts.promises import PromiseAsked, PromiseGot
from . import lease as leases
from .lease import Lease, LeaseTerms
from .quorum import may_go_on

MOST_ROUNDS = 4
"""How many requests may wait for answers: those of the last two seconds, with the usual terms."""


class Round(msgspec.Struct, frozen=True):
    """One request to all members."""

    nonce: str
    asked_at: float
    promised: frozenset[str] = frozenset()


Rounds = tuple[Round, ...]


def asks(lease: Lease, terms: LeaseTerms, now: float) -> bool:
    """Whether the node should ask its members for promises now.

    It may also ask after its right has ended: a majority that promises has not testified against it, so it
    is not lost, and does not become so for as long as they promised.
    """
    return not lease.over and lease.sent_at is not None and leases.is_away(lease, terms, now)


def ask(
    lease: Lease, rounds: Rounds, terms: LeaseTerms, nonce: str, now: float
) -> tuple[Lease, Rounds, tuple[PromiseAsked, ...]]:
    """A new round: the requests to send. A node that is its own majority holds at once."""
    listed = {member for members in leases.possible_members(lease) for member in members}
    requests = tuple(
        PromiseAsked(
            asker=lease.node_id,
            incarnation=lease.incarnation,
            member=member,
            nonce=nonce,
            lease_until_ms=lease.lease_until_ms,
            for_s=terms.promise_s,
        )
        for member in sorted(listed - {lease.node_id})
    )
    begun = Round(nonce, now)
    return _held(lease, begun, terms), (*rounds, begun)[-MOST_ROUNDS:], requests


def answered(lease: Lease, terms: LeaseTerms, asked: PromiseAsked, now: float) -> tuple[Lease, PromiseGot]:
    """What the member answers, and its lease with the promise."""
    reason = _refusal(lease, terms, asked, now)
    if not reason:
        until = now + min(asked.for_s, terms.promise_s)
        lease = replace(lease, promised_until=max(until, lease.promised_until or until))
    return lease, PromiseGot(
        member=lease.node_id,
        member_incarnation=lease.incarnation,
        asker=asked.asker,
        nonce=asked.nonce,
        granted=not reason,
        reason=reason,
    )


def _refusal(lease: Lease, terms: LeaseTerms, asked: PromiseAsked, now: float) -> str:
    if asked.member != lease.node_id:
        return f"this node is {lease.node_id}"
    if lease.sent_at is None:
        return "it has not renewed its own lease since it started"
    if asked.for_s > terms.promise_s:
        return f"a promise lasts {terms.promise_s:g} s at most"
    if not leases.is_away(lease, terms, now):
        return "it reaches the database"
    if leases.latest_testimony_ms(lease) > asked.lease_until_ms:
        return "it may have testified after the end of that lease"
    return ""


def got(lease: Lease, rounds: Rounds, terms: LeaseTerms, answer: PromiseGot) -> tuple[Lease, Rounds]:
    """The lease after an answer; one that belongs to no round, as a replayed one, changes nothing."""
    index = next((i for i, each in enumerate(rounds) if each.nonce == answer.nonce), None)
    if index is None or not answer.granted or answer.asker != lease.node_id:
        return lease, rounds
    found = replace(rounds[index], promised=rounds[index].promised | {answer.member})
    rounds = (*rounds[:index], found, *rounds[index + 1 :])
    return _held(lease, found, terms), rounds


def _held(lease: Lease, found: Round, terms: LeaseTerms) -> Lease:
    if lease.over or not may_go_on(lease.node_id, leases.possible_members(lease), found.promised):
        return lease
    until = found.asked_at + terms.promise_s - terms.margin_s
    return replace(lease, held_until=max(until, lease.held_until or until))
