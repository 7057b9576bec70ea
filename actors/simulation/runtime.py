"""One thread, a virtual clock, and a seeded order of delivery.

Messages to one actor arrive in the order in which they were sent, as in pykka; which actor
goes next is drawn from the seed. Time stands still while any message is undelivered, then
jumps to the next timer. A run is named by its seed and repeats exactly.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import pykka

from ..ports import Clock, Receiver, Timers
from ..runtime import housed, take, tell
from ..timekeeper import HeapTimer

if TYPE_CHECKING:
    from pykka._envelope import Envelope

A = TypeVar("A", bound=pykka.Actor)

EPOCH_MS = 1_700_000_000_000
"""What the virtual wall clock shows at the start."""


class VirtualClock:
    """Time that passes only when the simulation says so."""

    def __init__(self) -> None:
        self.now = 0.0
        self.wall_offset_ms = EPOCH_MS

    def monotonic(self) -> float:
        """Seconds since the simulation began."""
        return self.now

    def wall_ms(self) -> int:
        """The wall clock; it may be set, the other one may not."""
        return self.wall_offset_ms + round(self.now * 1000)

    def set_wall(self, by_ms: int) -> None:
        """Make the wall clock jump."""
        self.wall_offset_ms += by_ms


class VirtualTimers:
    """A heap of messages to come."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, HeapTimer]] = []
        self._order = itertools.count()

    def after(self, delay_s: float, receiver: Receiver, message: object) -> HeapTimer:
        """Tell the receiver the message once the delay has passed."""
        timer = HeapTimer(receiver, message)
        due = self._clock.now + max(0.0, delay_s)
        heapq.heappush(self._heap, (due, next(self._order), timer))
        return timer

    def next_due(self) -> float | None:
        """When the next timer that was not cancelled is due."""
        while self._heap and self._heap[0][2].receiver is None:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pending(self) -> list[tuple[float, object]]:
        """What is to come, soonest first: when, and the message."""
        waiting = sorted(entry for entry in self._heap if entry[2].receiver is not None)
        return [(due, timer.message) for due, _, timer in waiting]

    def fire(self) -> None:
        """Let time pass to the next timer and deliver it."""
        due, _, timer = heapq.heappop(self._heap)
        self._clock.now = max(self._clock.now, due)
        tell(timer.receiver, timer.message)


class SimulationRuntime:
    """Runs actors one message at a time."""

    def __init__(self, seed: int = 0) -> None:
        self._virtual = VirtualClock()
        self._timers = VirtualTimers(self._virtual)
        self._random = random.Random(seed)
        self._inboxes: dict[pykka.Actor, deque[Envelope[Any]]] = {}
        self._ready: list[pykka.Actor] = []
        self._refs: list[pykka.ActorRef[Any]] = []

    @property
    def clock(self) -> Clock:
        """The virtual clock, as the actors see it."""
        return self._virtual

    @property
    def virtual_clock(self) -> VirtualClock:
        """The virtual clock, for whoever moves it."""
        return self._virtual

    @property
    def timers(self) -> Timers:
        """The virtual timers."""
        return self._timers

    @property
    def virtual_timers(self) -> VirtualTimers:
        """The virtual timers, for whoever looks into them."""
        return self._timers

    def chance(self) -> float:
        """The seed's next number."""
        return self._random.random()

    def start(self, actor: type[A], /, *args: Any, **kwargs: Any) -> pykka.ActorRef[A]:
        """Start an actor that this simulation drives."""
        ref = housed(actor, self._put).start(*args, **kwargs)
        self._refs.append(ref)
        return ref

    def settle(self) -> None:
        """Deliver every message that is under way; no time passes."""
        ready = self._ready
        while ready:
            index = int(self._random.random() * len(ready)) if len(ready) > 1 else 0
            actor = ready[index]
            inbox = self._inboxes[actor]
            envelope = inbox.popleft()
            if not inbox:
                ready[index] = ready[-1]
                ready.pop()
            take(actor, envelope)

    def run_for(self, seconds: float) -> None:
        """Let virtual time pass."""
        self.run_until(lambda: False, self._virtual.now + seconds)

    def run_until(self, condition: Callable[[], bool], deadline: float = float("inf")) -> bool:
        """Let time pass until the condition holds; whether it did before the deadline."""
        self.settle()
        while not condition():
            due = self._timers.next_due()
            if due is None or due > deadline:
                if deadline != float("inf"):
                    self._virtual.now = max(self._virtual.now, deadline)
                return condition()
            self._timers.fire()
            self.settle()
        return True

    def close(self) -> None:
        """Stop every actor."""
        for ref in self._refs:
            ref.stop(block=False)
        self.settle()

    def crash(self) -> None:
        """End at once, as a process that is killed: nothing under way arrives, no actor hears of it."""
        self._ready.clear()
        self._inboxes.clear()
        for ref in self._refs:
            ref.actor_stopped.set()
            pykka.ActorRegistry.unregister(ref)

    def _put(self, actor: pykka.Actor, envelope: Envelope[Any]) -> None:
        inbox = self._inboxes.get(actor)
        if inbox is None:
            inbox = self._inboxes[actor] = deque()
        if not inbox:
            self._ready.append(actor)
        inbox.append(envelope)
