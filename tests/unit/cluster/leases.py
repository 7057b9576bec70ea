"""Leases, renewals and answers, as the tests of the rules need them."""

from __future__ import annotations

from msgspec.structs import replace

from rekindle.actors.cluster.cluster_messages import Joined, Renew, RenewalRefused, Renewed
from rekindle.actors.cluster.facts.nodes import Node, NodeState
from rekindle.actors.cluster.rules.lease import Lease, joined, renewal, renewed, terms

T = terms(3.0)
DATABASE_MS = 1_000_000
"""The time of the database when the agent's clock is at 0."""


def a_node(name: str = "n", **fields: object) -> Node:
    """A node with this id and name."""
    return replace(Node(id=name, name=name), **fields)


def a_new_life(name: str = "n", began: float = 0.0, living: tuple[str, ...] = (), **fields: object) -> Lease:
    """The lease of an agent that has just joined."""
    node, now_ms = a_node(name, incarnation=7, **fields), DATABASE_MS + round(began * 1000)
    answer = Joined(node=node, now_ms=now_ms, living=tuple(a_node(each) for each in living))
    return joined(answer, began, began)


def the_answer(request: Renew, at: float, living: tuple[str, ...] = ("n", "a", "b")) -> Renewed:
    """What the database answers if it applies a renewal at a time of the agent's clock."""
    now_ms = DATABASE_MS + round(at * 1000)
    return Renewed(
        number=request.number,
        now_ms=now_ms,
        lease_until_ms=now_ms + request.lease_ms,
        testified_at_wall_ms=now_ms if request.testify else 0,
        state=NodeState.UP,
        living=tuple(a_node(name) for name in living),
    )


def a_refusal(
    request: Renew, state: NodeState | None = NodeState.LOST, incarnation: int = 7
) -> RenewalRefused:
    """A renewal that the database did not apply."""
    return RenewalRefused(
        number=request.number, now_ms=DATABASE_MS, state=state, incarnation=incarnation, reason="it is lost"
    )


def a_lease(until: float = 5.0, name: str = "n", living: tuple[str, ...] = ("n", "a", "b")) -> Lease:
    """A lease that was renewed every half second, and answered at once, up to a time."""
    lease = a_new_life(name)
    at = 0.0
    while at <= until:
        lease, request = renewal(lease, T, at)
        lease = renewed(lease, T, the_answer(request, at, living), at)
        at += T.renew_s
    return lease
