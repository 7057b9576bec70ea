"""What the gateways that publish events need of the supervisor."""

from __future__ import annotations

from typing import Protocol

from ..messages import Event
from ..system.remembered_texts import RememberedTexts
from .operator import Operator


class EventSource(Operator, Protocol):
    """An operator that also publishes events of gateways, and stores a few values for them."""

    def announce(self, event: Event) -> None:
        """Publish an event. Never waits."""
        ...

    def notes(self) -> RememberedTexts:
        """The stored values by name; they survive restarts."""
        ...
