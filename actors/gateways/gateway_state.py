"""The state of a gateway that sends events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayState:
    """The state of one gateway that sends events."""

    name: str
    connected: bool
    detail: str
    """What it is connected to, or why it is not."""
    since_wall_ms: int
    """Since when `connected` has this value."""
    delivered: int = 0
    """Events delivered since the start."""
    dropped: int = 0
    """Events that were dropped."""
    waiting: int = 0
    """Events that are not delivered yet."""


class Gateway(Protocol):
    """A gateway that has a state."""

    def state(self) -> GatewayState:
        """The current state. Never waits."""
        ...
