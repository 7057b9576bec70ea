"""Tells sinks of alerts. A sink that hangs delays nobody: each has its thread and its bounded queue."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Protocol, Self

from loguru import logger

from ...messages import AlertChanged
from ...ports import Clock
from .notification import Filter, Notification, RateLimit

RETRY_DELAYS_S = (1.0, 2.0, 4.0, 8.0, 16.0)
"""After these a message is given up."""

MOST_WAITING = 100
"""Past so many messages the oldest are dropped."""


class Sink(Protocol):
    """Somewhere to send a notice."""

    def send(self, notice: Notification) -> None:
        """Send it, or raise `OSError`. May block, though not for ever."""
        ...


@dataclass(frozen=True, slots=True)
class Route:
    """A sink, and what it is sent."""

    sink: Sink
    filter: Filter = Filter()


class AlertNotifier:
    """Hears of alerts, as a listener, and has them sent. Use it as a context manager."""

    def __init__(
        self, routes: Sequence[Route], clock: Clock, retry_delays_s: Sequence[float] = RETRY_DELAYS_S
    ) -> None:
        self._posts = [_Post(route, clock, tuple(retry_delays_s)) for route in routes]

    def __enter__(self) -> Self:
        for post in self._posts:
            post.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for post in self._posts:
            post.end()

    def tell(self, message: object) -> None:
        """Hear an event."""
        if isinstance(message, AlertChanged):
            notice = Notification(happening=message.happening, alert=message.alert)
            for post in self._posts:
                post.take(notice)


class _Post:
    """One sink's queue and thread."""

    def __init__(self, route: Route, clock: Clock, delays: tuple[float, ...]) -> None:
        self._route = route
        self._clock = clock
        self._delays = delays
        self._waiting: deque[Notification] = deque()
        self._allowance = RateLimit()
        self._changed = threading.Condition()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="rekindle-alerts", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Send no more; what is being sent may finish, for a moment."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join(1.0)

    def take(self, notice: Notification) -> None:
        """Queue a notice, if it is wanted and not one too many; never blocks."""
        if not self._route.filter.wants(notice):
            return
        with self._changed:
            withheld = self._allowance.withheld
            now = self._clock.monotonic()
            self._allowance, admitted = self._allowance.admit(now, self._route.filter.per_minute)
            if not admitted:
                return
            self._waiting.append(replace(notice, withheld=withheld))
            if len(self._waiting) > MOST_WAITING:
                self._waiting.popleft()
                logger.warning("{} does not keep up; its oldest message is dropped", str(self._route.sink))
            self._changed.notify()

    def _run(self) -> None:
        while (notice := self._next()) is not None:
            self._deliver(notice)

    def _next(self) -> Notification | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._ended)
            return None if self._ended else self._waiting.popleft()

    def _deliver(self, notice: Notification) -> None:
        for delay in (*self._delays, None):
            failure = self._sent(notice)
            if failure is None:
                return
            if delay is None or self._pause(delay):
                sink = str(self._route.sink)
                logger.warning("alert {} was not sent to {}: {}", notice.alert.id, sink, repr(failure))
                return

    def _sent(self, notice: Notification) -> Exception | None:
        """What kept it from being sent, if anything did."""
        try:
            self._route.sink.send(notice)
        except Exception as error:  # noqa: BLE001  # whatever a sink meets, the next message is tried
            return error
        return None

    def _pause(self, seconds: float) -> bool:
        """Wait; whether the end came meanwhile."""
        with self._changed:
            return self._changed.wait_for(lambda: self._ended, seconds)
