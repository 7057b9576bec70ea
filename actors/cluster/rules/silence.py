"""Pure: how long a leader has seen each node silent, on the leader's own clock.

    a new number of renewals, a new incarnation ─▶ the wait begins again
    a gap between two readings ─▶ every wait begins again: what happened meanwhile is unknown
    unchanged for lease_s + margin_s ─▶ silent

Silence alone declares no node lost: the statement in the database has guards of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec

from ..facts.nodes import Node
from .lease import LeaseTerms


class Sighting(msgspec.Struct, frozen=True):
    """The last change of a node's row, and when the leader first saw it."""

    incarnation: int
    renewals: int
    since: float


class Watch(msgspec.Struct, frozen=True):
    """What a leader has read so far."""

    read_at: float | None = None
    seen: Mapping[str, Sighting] = msgspec.field(default_factory=lambda: MappingProxyType({}))


def read(watch: Watch, nodes: Iterable[Node], terms: LeaseTerms, now: float) -> Watch:
    """The watch after a reading; `now` is when its answer arrived."""
    is_gap = watch.read_at is None or now - watch.read_at > terms.lease_s / 2
    known = {} if is_gap else watch.seen
    return Watch(now, MappingProxyType({node.id: _sighting(known.get(node.id), node, now) for node in nodes}))


def _sighting(known: Sighting | None, node: Node, now: float) -> Sighting:
    if known is not None and (known.incarnation, known.renewals) == (node.incarnation, node.renewals):
        return known
    return Sighting(node.incarnation, node.renewals, now)


def silent(watch: Watch, terms: LeaseTerms, now: float) -> dict[str, Sighting]:
    """The nodes that have been silent for long enough, with what the leader last saw of them."""
    return {
        node_id: seen
        for node_id, seen in watch.seen.items()
        if now - seen.since >= terms.lease_s + terms.margin_s
    }
