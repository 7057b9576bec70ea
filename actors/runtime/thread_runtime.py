"""The real runtime: actors on lanes (shared threads), the system's clock, timers on one heap.

No handler of an actor on the core lane blocks. An actor that must block (the persistence actor, which
commits) names a lane of its own.
"""

from __future__ import annotations

import random
import time
from typing import Any, TypeVar

import pykka

from ..ports import Clock, Timers
from .lanes import Lane, lane_actor
from .pykka_internals import end_actor
from .resilient_actor import CORE
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
"""How long `close` waits for each thread."""

PRUNE_AFTER = 64
"""How many actors may be started before the refs of stopped ones are dropped."""


class ThreadRuntime:
    """Starts actors on lanes. Owns its threads and ends them."""

    def __init__(self) -> None:
        self.clock: Clock = RealClock()
        core = Lane(CORE)
        try:
            self._timekeeper = Timekeeper(self.clock)
        except BaseException:  # no thread could be started
            core.close(CLOSE_S)
            raise
        self.timers: Timers = self._timekeeper
        self._lanes = {CORE: core}
        self._classes: dict[type[pykka.Actor], type[pykka.Actor]] = {}
        self._refs: list[pykka.ActorRef[Any]] = []
        self._prune_at = PRUNE_AFTER

    def chance(self) -> float:
        """A random number from 0 up to but not including 1."""
        return random.random()

    def start(self, actor: type[A], /, *args: Any, **kwargs: Any) -> pykka.ActorRef[A]:
        """Start an actor on the lane that its class names."""
        on_lane = self._classes.get(actor)
        if on_lane is None:
            post = self._lane(getattr(actor, "lane", CORE)).post
            on_lane = self._classes.setdefault(actor, lane_actor(actor, post))
        ref: pykka.ActorRef[A] = on_lane.start(*args, **kwargs)  # type: ignore[assignment]
        self._refs.append(ref)
        if len(self._refs) > self._prune_at:
            self._refs = [each for each in self._refs if each.is_alive()]
            self._prune_at = 2 * len(self._refs) + PRUNE_AFTER
        return ref

    def _lane(self, name: str) -> Lane:
        return self._lanes.get(name) or self._lanes.setdefault(name, Lane(name))

    def stop_timers(self, timeout_s: float = CLOSE_S) -> None:
        """Deliver no scheduled message from now on."""
        self._timekeeper.close(timeout_s)

    def pass_through(self, timeout_s: float) -> bool:
        """Wait until the actors of the core lane have handled every message that was sent before."""
        return self._lanes[CORE].pass_through(timeout_s)

    def run_empty(self, timeout_s: float) -> bool:
        """Wait until no actor has a message, which lasts if nothing outside sends one; whether that was so.

        A round finds the lanes empty if it begins and ends without a message in any of them.
        """
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            lanes = tuple(self._lanes.values())
            if not all(lane.pass_through(max(0.0, deadline - time.monotonic())) for lane in lanes):
                return False
            if not any(lane.length for lane in lanes):
                return True
        return False

    def close(self, timeout_s: float = CLOSE_S) -> bool:
        """Stop every actor and thread; whether all of them ended in time."""
        self._timekeeper.close(timeout_s)
        for ref in self._refs:
            end_actor(ref)
        deadline = time.monotonic() + timeout_s
        # The core last: actors of other lanes may still send messages to it.
        ended = [lane.close(_left(deadline)) for lane in reversed(self._lanes.values())]
        self._refs.clear()
        return all(ended)


def _left(deadline: float) -> float:
    """How long to wait for a thread: one that has nothing to do always gets the time to end."""
    return max(0.2, deadline - time.monotonic())
