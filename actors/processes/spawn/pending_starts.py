"""Who is being started, and what is to be done to them once they are there."""

from __future__ import annotations

from ...runtime.lanes import Call


class PendingStarts:
    """`expect` is for everybody, all else for the loop.

    Orders to one worker keep their order: none overtakes another that waits for its start.
    """

    def __init__(self) -> None:
        self._expected: set[str] = set()
        self._orders: dict[str, list[Call]] = {}

    def expect(self, component_id: str) -> None:
        """It is on its way."""
        self._expected.add(component_id)

    def obey(self, component_id: str, order: Call) -> None:
        """Carry out an order now, or once it is there if it is on its way."""
        if component_id in self._expected:
            self._orders.setdefault(component_id, []).append(order)
        else:
            order()

    def arrived(self, component_id: str) -> list[Call]:
        """It is there, or will not come: what is to be carried out now."""
        self._expected.discard(component_id)
        return self._orders.pop(component_id, [])
