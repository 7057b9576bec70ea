"""Pure: what the Coordinator and the engine, which knows machines, tell each other."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from .facts.nodes import Resources


class RoomClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A reservation; without a node it is demand for the autoscaler."""

    component_id: str
    epoch: int
    node_id: str | None
    engine_node: str = ""
    """What the engine calls the node."""
    needs: Resources = Resources()
    labels: Mapping[str, str] = {}


class RoomGranted(msgspec.Struct, frozen=True):
    """The engine has reserved what the claim names."""

    claim: RoomClaim


class RoomDenied(msgspec.Struct, frozen=True):
    """The engine has no room for the claim."""

    claim: RoomClaim
    why: str


class NodeOffered(msgspec.Struct, frozen=True, kw_only=True):
    """The engine has a machine."""

    engine_node: str
    labels: Mapping[str, str] = {}
    total: Resources = Resources()
    free: Resources = Resources()


class NodeWithdrawn(msgspec.Struct, frozen=True, kw_only=True):
    """The engine has lost a machine; no lease ends by that."""

    engine_node: str
    certain: bool
    why: str


class EngineSilent(msgspec.Struct, frozen=True):
    """The engine does not answer: its last offers serve."""

    why: str


class EngineAnswered(msgspec.Struct, frozen=True):
    """The engine answers again."""


EngineNews = RoomGranted | RoomDenied | NodeOffered | NodeWithdrawn | EngineSilent | EngineAnswered
