"""The QueueWatch: how the queues are, for everyone who looks.

Workers claim and finish jobs by connections of their own, so nobody here hears of it. The watch looks
at the queues twice a second, for as long as a worker serves one, and tells the Broker, who tells those
who listen if something has changed. A look that takes long is followed by a longer pause: it never
takes more than a twentieth of a core. It decides nothing, and nobody waits for it.

It lives on a lane of its own, since a look blocks.
"""

from __future__ import annotations

from typing import ClassVar

from loguru import logger

from .broker_messages import QueuesSeen
from .errors import StoreError
from .internal_messages import LookAtQueues, WatchMessage, WatchQueues
from .jobs import JobState, QueueStats
from .ports import Receiver, Runtime, Store, Timer
from .runtime import ResilientActor, tell

PERIOD_S = 0.5
COST_FACTOR = 20
MOST_RUNNING = 1000
"""More running jobs than this are not listed one by one."""


class QueueWatch(ResilientActor):
    """Looks at the queues now and then."""

    lane: ClassVar[str] = "queues"

    def __init__(self, *, runtime: Runtime, store: Store, broker: Receiver) -> None:
        super().__init__(broker=broker)
        self._runtime = runtime
        self._store = store
        self._queues: tuple[str, ...] = ()
        self._timer: Timer | None = None
        self._is_away = False

    def recover(self) -> None:
        """Go on with the next look."""
        self._look_later(PERIOD_S)

    def handle(self, message: WatchMessage) -> None:
        """Take one message."""
        match message:
            case WatchQueues(queues=queues):
                self._queues = queues
                if queues and self._timer is None:
                    self._look_later(0.0)
            case LookAtQueues():
                self._timer = None
                if self._queues:
                    self._look()
            case unknown:
                self.unexpected(unknown)

    def _look(self) -> None:
        began = self._runtime.clock.monotonic()
        try:
            found = self._store.jobs.stats()
            running = self._store.jobs.find(state=JobState.RUNNING.value, limit=MOST_RUNNING)
        except StoreError as error:
            if not self._is_away:
                logger.warning("the queues cannot be looked at: {}", str(error))
            self._is_away = True
        else:
            self._is_away = False
            known = {stats.queue for stats in found}
            empty = tuple(QueueStats(queue=queue) for queue in self._queues if queue not in known)
            tell(self.broker, QueuesSeen((*found, *empty), running))
        cost = self._runtime.clock.monotonic() - began
        self._look_later(max(PERIOD_S, COST_FACTOR * cost))

    def _look_later(self, delay_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._runtime.timers.after(delay_s, self.actor_ref, LookAtQueues())
