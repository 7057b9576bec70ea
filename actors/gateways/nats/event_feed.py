"""What the NATS gateway needs of whoever has the events."""

from __future__ import annotations

from typing import Protocol

from ...messages import Event
from ...system.gateway_memory import GatewayMemory
from ..operator import Operator


class Feed(Operator, Protocol):
    """An operator who also takes news from gateways, and remembers a few words for them."""

    def announce(self, event: Event) -> None:
        """Tell everyone. Never waits."""
        ...

    def notes(self) -> GatewayMemory:
        """What is remembered by name, across restarts too."""
        ...
