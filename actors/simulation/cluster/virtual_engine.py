"""An engine that grants every reservation while it is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...cluster.engine_messages import EngineAnswered, EngineSilent, RoomClaim, RoomDenied, RoomGranted
from ...ports import Receiver

if TYPE_CHECKING:
    from .virtual_node import VirtualNode

ANSWERS_S = 0.01


class VirtualEngine:
    """Answers after a moment; while it is away, that it is away."""

    def __init__(self) -> None:
        self.is_away = False

    def port(self, node: VirtualNode) -> EnginePort:
        """The engine as the coordinator of a node reaches it."""
        return EnginePort(self, node)


class EnginePort:
    """The engine as one coordinator reaches it."""

    def __init__(self, engine: VirtualEngine, node: VirtualNode) -> None:
        self._engine, self._node = engine, node
        self._said_away = False

    def reserve(self, claim: RoomClaim, receiver: Receiver) -> None:
        """Reserve room for a worker."""
        if self._engine.is_away:
            self._said_away = True
            self._node.later(ANSWERS_S, receiver, EngineSilent("it does not answer"))
            return
        if self._said_away:
            self._said_away = False
            self._node.later(ANSWERS_S, receiver, EngineAnswered())
        answer = (
            RoomDenied(claim, "no machine can be started") if claim.node_id is None else RoomGranted(claim)
        )
        self._node.later(ANSWERS_S, receiver, answer)

    def keep(self, claims: tuple[RoomClaim, ...]) -> None:
        """Have exactly these reservations: there is always room."""

    def want_agent(self, engine_node: str) -> None:
        """Every machine has an agent."""
