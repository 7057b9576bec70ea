"""Mistakes of our own, put into the actors: a handler that raises at a chosen message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rekindle.actors.runtime.resilient_actor import ResilientActor

Chosen = Callable[[Any], bool]


class Mistake:
    """Has one class of actors raise at chosen messages, a given number of times."""

    def __init__(
        self,
        actor: type[ResilientActor],
        chosen: Chosen,
        *,
        error: BaseException | None = None,
        times: int = 1,
        after: bool = False,
    ) -> None:
        self.actor = actor
        self.chosen = chosen
        self.error = error or RuntimeError("a mistake")
        self.left = times
        self.after = after
        """Raise when all is done, not before anything is."""
        self.made = 0

    def put_in(self, monkeypatch: pytest.MonkeyPatch) -> Mistake:
        """Put the mistake into the actors."""
        right = self.actor.handle
        mistake = self

        def handle(self: ResilientActor, message: Any) -> None:
            wrong = mistake.left > 0 and mistake.chosen(message)
            if not wrong or mistake.after:
                right(self, message)
            if wrong:
                mistake.left -= 1
                mistake.made += 1
                raise mistake.error

        monkeypatch.setattr(self.actor, "handle", handle)
        return self


def at(*kinds: type[object], where: Chosen = lambda message: True) -> Chosen:
    """Messages of these kinds."""
    return lambda message: isinstance(message, kinds) and where(message)
