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
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pykka
from pykka.messages import ProxyCall, ProxyGetAttr, ProxySetAttr, _ActorStop

from ..ports import Clock, Receiver, Timers
from ..runtime import take, tell
from ..timekeeper import HeapTimer

if TYPE_CHECKING:
    from pykka._envelope import Envelope

A = TypeVar("A", bound=pykka.Actor)
T = TypeVar("T", bound=HeapTimer)

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
        return self.put(delay_s, HeapTimer(receiver, message))

    def put(self, delay_s: float, timer: T) -> T:
        """Have a timer fire once the delay has passed."""
        due = self._clock.now + max(0.0, delay_s)
        entry: tuple[float, int, HeapTimer] = (due, next(self._order), timer)
        heapq.heappush(self._heap, entry)
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
        receiver, message = timer.receiver, timer.message
        self.firing(timer)
        tell(receiver, message)

    def firing(self, timer: HeapTimer) -> None:
        """A timer is about to be delivered."""


class _Inbox:
    """An actor's inbox, which stands in line while there is something in it."""

    __slots__ = ("actor", "queue", "ready")

    def __init__(self, ready: list[_Inbox]) -> None:
        self.ready = ready
        self.queue: deque[Envelope[Any]] = deque()
        self.actor: pykka.Actor

    def put(self, envelope: Envelope[Any], /) -> None:
        """Queue an envelope."""
        if not self.queue:
            self.ready.append(self)
        self.queue.append(envelope)

    def get(self) -> Envelope[Any]:
        """Nobody takes from here: the runtime hands envelopes to the actor."""
        raise NotImplementedError

    def empty(self) -> bool:
        """As pykka asks for it."""
        return not self.queue


class SimulationRuntime:
    """Runs actors one message at a time."""

    def __init__(self, seed: int = 0, clock: VirtualClock | None = None) -> None:
        """Begin with a seed for the order of delivery; a clock that goes already goes on."""
        self._virtual = clock or VirtualClock()
        self._timers = self._make_timers()
        self._random = random.Random(seed)
        self._ready: list[_Inbox] = []
        self._refs: list[pykka.ActorRef[Any]] = []
        self.watch: Callable[[pykka.Actor, Any], bool] | None = None
        """Sees every message before its actor does, and may lose it by answering True."""

    def _make_timers(self) -> VirtualTimers:
        return VirtualTimers(self._virtual)

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
        driven = _driven(actor)
        _starting.append(self._ready)
        try:
            ref: pykka.ActorRef[A] = driven.start(*args, **kwargs)
        finally:
            _starting.pop()
        self._refs.append(ref)
        return ref

    def settle(self) -> None:
        """Deliver every message that is under way; no time passes."""
        ready, chance, watch = self._ready, self._random.random, self.watch
        while ready:
            index = int(chance() * len(ready)) if len(ready) > 1 else 0
            inbox = ready[index]
            envelope = inbox.queue.popleft()
            if not inbox.queue:
                ready[index] = ready[-1]
                ready.pop()
            actor, message = inbox.actor, envelope.message
            if watch is not None and watch(actor, message):
                continue
            if type(message) in _OF_PYKKA or envelope.reply_to is not None or actor.actor_stopped.is_set():
                take(actor, envelope)
            else:
                actor.on_receive(message)

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
        for inbox in self._ready:
            inbox.queue.clear()
        self._ready.clear()
        for ref in self._refs:
            ref.actor_stopped.set()
            pykka.ActorRegistry.unregister(ref)


_OF_PYKKA = frozenset({ProxyCall, ProxyGetAttr, ProxySetAttr, _ActorStop})
_starting: list[list[_Inbox]] = []
"""Whose line the inbox of the actor that is just being made belongs to."""
_driven_classes: dict[type[pykka.Actor], type[pykka.Actor]] = {}


def _driven(actor: type[A]) -> type[A]:
    """The same actor class, driven by a simulation; made once, since making a class takes its time."""
    known = _driven_classes.get(actor)
    if known is None:
        body: dict[str, object] = {
            "__module__": actor.__module__,
            "__doc__": actor.__doc__,
            "_create_actor_inbox": staticmethod(lambda: _Inbox(_starting[-1])),
            "_create_future": staticmethod(pykka.ThreadingFuture),
            "_start_actor_loop": _begin,
        }
        known = _driven_classes[actor] = type(actor.__name__, (actor,), body)
    return cast("type[A]", known)


def _begin(actor: pykka.Actor) -> None:
    inbox = actor.actor_inbox
    assert isinstance(inbox, _Inbox)
    inbox.actor = actor
    actor.on_start()
