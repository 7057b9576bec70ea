"""A simulation that records the timers of restarts in a history."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import pykka

from ..messages.internal.to_supervisor import BackoffElapsed
from ..persistence_actor import PersistenceActor
from ..ports import Receiver
from ..runtime.timekeeper import HeapTimer
from ..worker_proxy import WorkerProxy
from . import observer
from .scenarios.history import TimerFired
from .scenarios.moves import Phase
from .simulation_runtime import SimulationRuntime, VirtualClock, VirtualTimers

if TYPE_CHECKING:
    from .virtual_run import VirtualRun


A = TypeVar("A", bound=pykka.Actor)


class RecordedTimer(HeapTimer):
    """The timer of a restart; its cancellation is recorded."""

    __slots__ = ("dropped",)

    def __init__(
        self, receiver: Receiver, message: object, dropped: Callable[[BackoffElapsed], None]
    ) -> None:
        super().__init__(receiver, message)
        self.dropped = dropped

    def cancel(self) -> None:
        """Cancel it, unless it has fired."""
        if isinstance(self.message, BackoffElapsed):
            self.dropped(self.message)
        super().cancel()


class RecordedTimers(VirtualTimers):
    """Timers that record restarts."""

    def __init__(self, clock: VirtualClock, run: VirtualRun) -> None:
        super().__init__(clock)
        self._run = run

    def after(self, delay_s: float, receiver: Receiver, message: object) -> HeapTimer:
        """Send the message to the receiver after the delay."""
        if type(message) is not BackoffElapsed:
            return self.put(delay_s, HeapTimer(receiver, message))
        run = self._run
        run.note(observer.timer_set(run.clock.now, delay_s, message))
        if run.waits_for_phases:
            run.reached(Phase.BACKOFF, message.component_id, delay_s / 2)
        return self.put(delay_s, RecordedTimer(receiver, message, self._dropped))

    def _dropped(self, message: BackoffElapsed) -> None:
        self._run.note(observer.timer_dropped(self._run.clock.now, message))

    def firing(self, timer: HeapTimer) -> None:
        """A timer is about to be delivered."""
        message = timer.message
        if isinstance(timer, RecordedTimer) and isinstance(message, BackoffElapsed):
            self._run.note(TimerFired(self._run.clock.now, message.component_id, message.generation))
            timer.message = None


class RecordedRuntime(SimulationRuntime):
    """A simulation whose restart timers are recorded, and what is sent to the persistence actor."""

    def __init__(self, run: VirtualRun, seed: int, hear: Callable[[object], None]) -> None:
        self._run = run
        self._hear = hear
        self.proxies: dict[str, pykka.ActorRef[Any]] = {}
        """The proxy of each worker."""
        super().__init__(seed, run.clock)

    def start(self, actor: type[A], /, *args: Any, **kwargs: Any) -> pykka.ActorRef[A]:
        """Start an actor."""
        ref = super().start(actor, *args, **kwargs)
        if actor is PersistenceActor:
            self.overhear(ref, self._hear)
        elif actor is WorkerProxy:
            self.proxies[args[0].id] = ref
        return ref

    def _make_timers(self) -> VirtualTimers:
        return RecordedTimers(self.virtual_clock, self._run)
