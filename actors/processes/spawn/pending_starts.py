"""Orders for processes whose start is in progress."""

from __future__ import annotations

from collections.abc import Iterable

from ...runtime.lanes import Call


class PendingStarts:
    """Any thread may call `add`, the rest is for the loop.

    Orders to one worker keep their sequence: none overtakes another that waits for the start.
    """

    def __init__(self, inherited: Iterable[str] = ()) -> None:
        """`inherited` are workers whose processes the former program left: orders wait for the adoption."""
        self._starting = set(inherited)
        self._orders: dict[str, list[Call]] = {}

    def add(self, component_id: str) -> None:
        """A start begins."""
        self._starting.add(component_id)

    def run_or_queue(self, component_id: str, order: Call) -> None:
        """Carry out an order now, or after the start that is in progress."""
        if component_id in self._starting:
            self._orders.setdefault(component_id, []).append(order)
        else:
            order()

    def finish(self, component_id: str) -> list[Call]:
        """The start succeeded or failed; the orders to carry out now."""
        self._starting.discard(component_id)
        return self._orders.pop(component_id, [])
