"""Starts that wait until the machine has room for another process.

Belongs to the Supervisor and runs in it.
"""

from __future__ import annotations

from ...messages import StartsHindered, StartsResumed
from ...ports import Receiver
from ...runtime.resilient_actor import tell


class RoomWaits:
    """Reports the first start that found no room, and when none waits any longer."""

    def __init__(self, persistence: Receiver) -> None:
        self._persistence = persistence
        self._waiting: set[str] = set()

    def failed(self, component_id: str, error: str) -> None:
        """A start found no room."""
        if not self._waiting:
            tell(self._persistence, StartsHindered(component_id, error))
        self._waiting.add(component_id)

    def over(self, component_id: str) -> None:
        """The worker was started, or is no longer wanted."""
        if component_id in self._waiting:
            self._waiting.discard(component_id)
            if not self._waiting:
                tell(self._persistence, StartsResumed())
