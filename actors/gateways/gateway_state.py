"""How a gateway is, for whoever looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayState:
    """One gateway that tells events to the outside."""

    name: str
    connected: bool
    detail: str
    """Where it is connected to, or why it is not."""
    since_wall_ms: int
    """Since when it is like that."""
    delivered: int = 0
    """Events that arrived, since it was started."""
    dropped: int = 0
    """Events that it gave up."""
    waiting: int = 0
    """Events that have not arrived yet."""


class Gateway(Protocol):
    """An edge that has a state."""

    def state(self) -> GatewayState:
        """How it is. Never waits."""
        ...
