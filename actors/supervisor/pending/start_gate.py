"""Pure bookkeeping: how many workers may be starting at the same time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

Ticket = tuple[str, int]
"""(component_id, generation)"""


class StartGate:
    """Lets a limited number of incarnations start at once; the others wait in order.

    A start is over when the incarnation turns healthy or ends.
    """

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._starting: set[Ticket] = set()
        self._waiting: deque[Ticket] = deque()

    def admit(self, ticket: Ticket) -> bool:
        """Whether this start may happen now; if not, it is queued."""
        if self._limit is None:
            return True
        if len(self._starting) >= self._limit:
            self._waiting.append(ticket)
            return False
        self._starting.add(ticket)
        return True

    def known(self) -> tuple[Ticket, ...]:
        """The starts that are under way, for the program that replaces this one."""
        return tuple(sorted(self._starting))

    def take_over(self, tickets: Iterable[Ticket]) -> None:
        """Go on with the starts that the former program began."""
        if self._limit is not None:
            self._starting.update(tickets)

    def release(self, ticket: Ticket) -> Ticket | None:
        """A start is over; the next one that may happen now, if any waits."""
        if self._limit is None or ticket not in self._starting:
            return None
        self._starting.discard(ticket)
        return self.next()

    def next(self) -> Ticket | None:
        """Take the next start that waits, if there is room for it."""
        if not self._waiting or (self._limit is not None and len(self._starting) >= self._limit):
            return None
        ticket = self._waiting.popleft()
        self._starting.add(ticket)
        return ticket
