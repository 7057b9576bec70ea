"""The real runtime: actors on lanes (shared threads), the system's clock, timers on one heap."""

from __future__ import annotations

import random
import time
from functools import partial
from typing import Any, TypeVar

import pykka

from ..ports import Clock, Timers
from .lanes import Lane, housed
from .resilient_actor import CORE, tell
from .timekeeper import Timekeeper

A = TypeVar("A", bound=pykka.Actor)


class RealClock:
    """The system's clocks."""

    monotonic = staticmethod(time.monotonic)
    """Seconds that never jump."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970."""
        return time.time_ns() // 1_000_000


CLOSE_S = 5.0
"""How long the end of a thread is waited for."""


PRUNE_AFTER = 64
"""So many actors may come and go before those that are gone are forgotten."""


class ThreadRuntime:
    """Actors on lanes, timers on one heap thread. Owns its threads and ends them."""

    def __init__(self) -> None:
        self.clock: Clock = RealClock()
        self.core = Lane(CORE)
        try:
            self._timekeeper = Timekeeper(self.clock)
        except BaseException:  # no thread was to be had
            self.core.close(CLOSE_S)
            raise
        self.timers: Timers = self._timekeeper
        self._lanes = {CORE: self.core}
        self._classes: dict[type[pykka.Actor], type[pykka.Actor]] = {}
        self._refs: list[pykka.ActorRef[Any]] = []
        self._prune_at = PRUNE_AFTER

    def chance(self) -> float:
        """A random number from 0 up to but not including 1."""
        return random.random()

    def start(self, actor: type[A], /, *args: Any, **kwargs: Any) -> pykka.ActorRef[A]:
        """Start an actor on the lane that its class names."""
        housed_class = self._classes.get(actor)
        if housed_class is None:
            post = self._lane(getattr(actor, "lane", CORE)).post
            housed_class = self._classes.setdefault(actor, housed(actor, post))
        ref: pykka.ActorRef[A] = housed_class.start(*args, **kwargs)  # type: ignore[assignment]
        self._refs.append(ref)
        if len(self._refs) > self._prune_at:
            self._refs = [each for each in self._refs if each.is_alive()]
            self._prune_at = 2 * len(self._refs) + PRUNE_AFTER
        return ref

    def at_leisure(self, receiver: pykka.ActorRef[Any], message: object) -> None:
        """Tell an actor something once its lane had nothing else to do for a moment."""
        lane = self._lane(getattr(receiver.actor_class, "lane", CORE))
        lane.at_leisure(partial(tell, receiver, message))

    def _lane(self, name: str) -> Lane:
        """The lane of that name; the others help the core, to which they tell what they did."""
        return self._lanes.get(name) or self._lanes.setdefault(name, Lane(name, self.core))

    def close(self, timeout_s: float = CLOSE_S) -> bool:
        """Stop every actor and thread; whether all of them ended in time."""
        self._timekeeper.close(timeout_s)
        for ref in self._refs:
            ref.stop(block=False)
        # The core last: the others may have something to tell it still.
        ended = [lane.close(timeout_s) for lane in reversed(self._lanes.values())]
        self._refs.clear()
        return all(ended)
