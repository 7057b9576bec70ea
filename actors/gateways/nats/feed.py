"""What the NATS gateway needs of whoever has the events."""

from __future__ import annotations

from typing import Protocol

from ...messages import Event
from ...notes import Notes
from ...ports import Receiver
from ...records import EventPage
from ..operator import Operator


class Feed(Operator, Protocol):
    """Tells events, reads back old ones, and remembers a few words. `System` is one."""

    def subscribe(self, receiver: Receiver, *topics: str) -> None:
        """Tell a receiver a `Snapshot`, then every `Published` event of these topics."""
        ...

    def unsubscribe(self, receiver: Receiver) -> None:
        """Stop telling it."""
        ...

    def event_log(self, after_id: int, limit: int) -> EventPage:
        """The events after this one that are kept, oldest first. May wait for the store."""
        ...

    def announce(self, event: Event) -> None:
        """Tell everyone. Never waits."""
        ...

    def notes(self) -> Notes:
        """What is remembered by name, across restarts too."""
        ...
