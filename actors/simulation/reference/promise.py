"""Pure: a promise that is checked entry by entry, and the deadlines by which something must happen."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from math import inf
from typing import Any, ClassVar

from ..scenarios.known_state import Facts

EXACT_S = 0.002
"""Times closer than this are the same one."""
REPLACED_S = 20.0
"""How much later things may happen in the life of a supervisor in which an actor raised."""
SETTLED_S = 20.0
"""How long the database must be available before nothing waits for it; retries wait at most 16 s."""

Why = Callable[[], str | None]
"""Evaluated when a deadline has passed: the broken promise in words, or None if it no longer applies."""


class Deadlines:
    """What must happen, and by when."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._due: dict[Hashable, tuple[float, str, Why]] = {}
        self.soonest = inf
        """Before this nothing is due."""
        self._awake_since = -1.0

    def set(self, key: Hashable, due: float, rule: str, why: Why) -> None:
        """Something must have happened when time has passed beyond `due`, unless it is cleared before."""
        self._due[key] = (due, rule, why)
        self.soonest = min(self.soonest, due)

    def clear(self, key: Hashable) -> None:
        """It has happened, or need not happen."""
        self._due.pop(key, None)

    def forget_all(self) -> None:
        """The supervisor is gone."""
        self._due.clear()
        self.soonest = inf

    def slept_until(self, at: float) -> None:
        """The host slept: what was due meanwhile happens now."""
        self._awake_since = at

    def passed(self, now: float) -> Iterator[tuple[str, str]]:
        """The rules that are broken because nothing happened in time, in words."""
        if now <= self.soonest + EXACT_S or now <= self._awake_since + EXACT_S:
            return
        grace = EXACT_S + (REPLACED_S if self._facts.an_actor_raised else 0.0)
        # Replacing an actor takes time in which the host is awake.
        over = [key for key, (due, _, _) in self._due.items() if now > max(due, self._awake_since) + grace]
        due = [self._due.pop(key) for key in over]
        for _, rule, why in due:
            what = why()
            if what is not None:
                yield rule, what
        self.soonest = min((due for due, _, _ in self._due.values()), default=inf)


class Promise:
    """One promise; subclasses list what they hear."""

    rule: ClassVar[str]

    def __init__(self, facts: Facts, deadlines: Deadlines) -> None:
        self.facts = facts
        self.deadlines = deadlines

    def hears(self) -> Mapping[type, Callable[[Any], Iterator[str] | None]]:
        """What is called with which entries, before the facts follow them."""
        raise NotImplementedError

    def by(self, key: Hashable, due: float, why: Why) -> None:
        """Something must have happened when time has passed beyond `due`."""
        self.deadlines.set((self.rule, key), due, self.rule, why)

    def done(self, key: Hashable) -> None:
        """It has happened, or need not happen."""
        self.deadlines.clear((self.rule, key))

    def store_is_settled(self, at: float) -> bool:
        """Whether nothing can still wait for the database."""
        since = self.facts.database_since
        return since is not None and (since == 0.0 or at - since > SETTLED_S)
