"""One thread, a virtual clock, and a seeded order of delivery.

Messages to one actor arrive in the order in which they were sent, as in pykka; which actor
goes next is drawn from the seed. Time stands still until every message is delivered, then
jumps to the next timer. The same seed repeats a run exactly.
"""

from __future__ import annotations

import itertools
import random
from collections import deque
from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from types import MappingProxyType
from typing import Any, TypeVar, cast

import pykka

from ..ports import Clock, Receiver, Timers
from ..runtime.pykka_internals import Envelope, actor_class, end_actor, handle_envelope
from ..runtime.resilient_actor import tell
from ..runtime.timekeeper import HeapTimer

A = TypeVar("A", bound=pykka.Actor)
T = TypeVar("T", bound=HeapTimer)

EPOCH_MS = 1_700_000_000_000
"""The virtual wall-clock time at the start."""


MOST_MESSAGES = 200_000
"""How many messages may be delivered in one moment."""


class EndlessMomentError(RuntimeError):
    """The actors do not come to rest: they send each other messages, or set timers, without an end."""


class VirtualClock:
    """A clock that only the simulation advances."""

    def __init__(self) -> None:
        self.now = 0.0
        self.wall_offset_ms = EPOCH_MS

    def monotonic(self) -> float:
        """Seconds since the simulation began."""
        return self.now

    def wall_ms(self) -> int:
        """The wall clock, which may be set; the monotonic clock may not."""
        return self.wall_offset_ms + round(self.now * 1000)

    def set_wall(self, by_ms: int) -> None:
        """Make the wall clock jump."""
        self.wall_offset_ms += by_ms


class VirtualTimers:
    """A heap of messages that are due later."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, HeapTimer]] = []
        self._order = itertools.count()

    def after(self, delay_s: float, receiver: Receiver, message: object) -> HeapTimer:
        """Send the message to the receiver after the delay."""
        return self.put(delay_s, HeapTimer(receiver, message))

    def put(self, delay_s: float, timer: T) -> T:
        """Make a timer fire after the delay."""
        due = self._clock.now + delay_s if delay_s > 0.0 else self._clock.now
        entry: tuple[float, int, HeapTimer] = (due, next(self._order), timer)
        heappush(self._heap, entry)
        return timer

    def next_due(self) -> float | None:
        """When the next timer that was not cancelled is due."""
        heap = self._heap
        while heap:
            if heap[0][2].receiver is not None:
                return heap[0][0]
            heappop(heap)
        return None

    def pending(self) -> list[tuple[float, object]]:
        """The pending timers, soonest first: when each is due, and its message."""
        waiting = sorted(entry for entry in self._heap if entry[2].receiver is not None)
        return [(due, timer.message) for due, _, timer in waiting]

    def waiting(self) -> list[HeapTimer]:
        """The timers that were not cancelled."""
        return [timer for _, _, timer in self._heap if timer.receiver is not None]

    def fire(self) -> None:
        """Let time pass to the next timer and deliver it."""
        due, _, timer = heappop(self._heap)
        if due > self._clock.now:
            self._clock.now = due
        receiver, message = timer.receiver, timer.message
        if type(timer) is not HeapTimer:
            self.firing(timer)
        tell(receiver, message)

    def firing(self, timer: HeapTimer) -> None:
        """A timer of another kind than the plain one is about to be delivered."""


class _Inbox:
    """An actor's inbox, which is in the list of ready inboxes while it is not empty.

    Messages of `tell` are queued as they are; requests and the actor's stop are in an envelope.
    """

    __slots__ = ("actor", "is_closed", "overheard", "queue", "ready")

    def __init__(self, ready: list[_Inbox]) -> None:
        self.ready = ready
        self.is_closed = False
        """Its actor has stopped: nothing more is delivered."""
        self.overheard: Callable[[Any], None] | None = None
        """Called with every message to which nothing replies, in the moment in which it is sent."""
        self.queue: deque[Any] = deque()
        self.actor: pykka.Actor

    def put(self, envelope: Any, /) -> None:
        """Queue an envelope."""
        if not self.queue:
            self.ready.append(self)
        self.queue.append(envelope)

    def put_message(self, message: Any, /) -> None:
        """Queue a message to which nothing replies, without an envelope."""
        if self.overheard is not None:
            self.overheard(message)
        if not self.queue:
            self.ready.append(self)
        self.queue.append(message)

    def get(self) -> Envelope[Any]:
        """Not used: the runtime passes envelopes to the actor."""
        raise NotImplementedError

    def empty(self) -> bool:
        """Part of the inbox interface of pykka."""
        return not self.queue


class SimulationRuntime:
    """Runs actors one message at a time."""

    def __init__(self, seed: int = 0, clock: VirtualClock | None = None) -> None:
        """Begin with a seed for the order of delivery, on a new clock or on that of an earlier simulation."""
        self.virtual_clock = clock or VirtualClock()
        """The clock, for code that moves it."""
        self.clock: Clock = self.virtual_clock
        self.virtual_timers = self._make_timers()
        """The timers, for code that inspects them."""
        self.timers: Timers = self.virtual_timers
        self._random = random.Random(seed)
        self._ready: list[_Inbox] = []
        self._refs: list[pykka.ActorRef[Any]] = []
        self.watch: Callable[[pykka.Actor, Any], None] | None = None
        """Called with every message before its actor handles it."""
        self.reactions: Mapping[type, Callable[[pykka.Actor, Any], bool]] = MappingProxyType({})
        """By type: called with every message of a kind before its actor is; True drops the message."""

    def _make_timers(self) -> VirtualTimers:
        return VirtualTimers(self.virtual_clock)

    def chance(self) -> float:
        """The next random number of the seed."""
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

    def overhear(self, ref: pykka.ActorRef[Any], hear: Callable[[Any], None]) -> None:
        """Call a function with every message to this actor, in the moment in which it is sent."""
        inbox = ref.actor_inbox
        assert isinstance(inbox, _Inbox)
        inbox.overheard = hear

    def settle(self) -> None:
        """Deliver every message that is under way; no time passes."""
        ready, chance, reactions = self._ready, self._random.random, self.reactions
        left = MOST_MESSAGES
        while ready:
            left -= 1
            if not left:
                raise EndlessMomentError(f"more than {MOST_MESSAGES} messages between actors in one moment")
            index = int(chance() * len(ready)) if len(ready) > 1 else 0
            inbox = ready[index]
            message = inbox.queue.popleft()
            if not inbox.queue:
                ready[index] = ready[-1]
                ready.pop()
            actor = inbox.actor
            if self.watch is not None:
                self.watch(actor, message)
            react = reactions.get(type(message))
            if react is not None and react(actor, message):
                continue
            if type(message) is Envelope:
                handle_envelope(actor, message)
                inbox.is_closed = actor.actor_stopped.is_set()
            elif not inbox.is_closed:
                actor.on_receive(message)

    def run_for(self, seconds: float) -> None:
        """Let virtual time pass."""
        self.run_until(lambda: False, self.virtual_clock.now + seconds)

    def run_until(self, condition: Callable[[], bool], deadline: float = float("inf")) -> bool:
        """Let time pass until the condition holds; whether it did before the deadline."""
        self.settle()
        while not condition():
            due = self.virtual_timers.next_due()
            if due is None or due > deadline:
                if deadline != float("inf"):
                    self.virtual_clock.now = max(self.virtual_clock.now, deadline)
                return condition()
            self.virtual_timers.fire()
            self.settle()
        return True

    def close(self) -> None:
        """Stop every actor."""
        for ref in self._refs:
            end_actor(ref)
        self.settle()

    def retire(self) -> None:
        """End the actors and their timers, as an upgrade does; what is not an actor continues."""
        actors = {ref.actor_urn for ref in self._refs}
        for timer in self.virtual_timers.waiting():
            if isinstance(timer.receiver, pykka.ActorRef) and timer.receiver.actor_urn in actors:
                timer.cancel()
        self.crash()
        self._refs.clear()

    def crash(self) -> None:
        """End at once, as a killed process does: no message under way is delivered, no actor is notified."""
        for inbox in self._ready:
            inbox.queue.clear()
        self._ready.clear()
        for ref in self._refs:
            ref.actor_stopped.set()
            if isinstance(ref.actor_inbox, _Inbox):
                ref.actor_inbox.is_closed = True
            pykka.ActorRegistry.unregister(ref)


_starting: list[list[_Inbox]] = []
"""The list of ready inboxes of the simulation that is just starting an actor."""
_driven_classes: dict[type[pykka.Actor], type[pykka.Actor]] = {}


def _driven(actor: type[A]) -> type[A]:
    """The same actor class, driven by a simulation; cached, because creating a class is slow."""
    known = _driven_classes.get(actor)
    if known is None:
        known = _driven_classes[actor] = actor_class(actor, lambda: _Inbox(_starting[-1]))
    return cast("type[A]", known)
