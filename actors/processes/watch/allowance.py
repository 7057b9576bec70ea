"""Pure: how much may be used at once, and how much a second after that."""

from __future__ import annotations


class Allowance:
    """An amount that grows with time up to a limit, and shrinks by what is used."""

    __slots__ = ("_left", "_most", "_per_second", "_refilled_at")

    def __init__(self, per_second: float, most: float, now: float) -> None:
        self._per_second = per_second
        self._most = most
        self._left = most
        self._refilled_at = now

    def left(self, now: float) -> int:
        """How much may be used now."""
        self._left = min(self._most, self._left + (now - self._refilled_at) * self._per_second)
        self._refilled_at = now
        return int(self._left)

    def use(self, amount: int) -> None:
        """Use some of what is left."""
        self._left -= amount
