"""Sends alerts to sinks, each with its own thread and bounded queue: one that hangs delays no other."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Protocol, Self

from loguru import logger

from ...facts.alert import Alert, AlertKind, Happening, Severity
from ...messages import AlertChanged
from ...ports import Clock
from ...views.redaction import masked_text
from ..delivery_state import now_ms
from ..gateway_state import GatewayState
from .notification import Filter, Notification, SinkRateLimit

RETRY_DELAYS_S = (1.0, 2.0, 4.0, 8.0, 16.0)
"""After the last retry the message is dropped."""

MOST_WAITING = 100
"""When the queue is longer, the oldest message is dropped."""


class Sink(Protocol):
    """A destination of notifications."""

    def send(self, notification: Notification) -> None:
        """Send it, or raise `OSError`. May block, but must return in the end."""
        ...


@dataclass(frozen=True, slots=True)
class SinkRoute:
    """A sink and its filter."""

    sink: Sink
    filter: Filter = Filter()
    name: str = ""
    """The name of the sink in the file."""


class AlertNotifier:
    """Receives alerts as a subscriber, and sends them. Use it as a context manager."""

    def __init__(
        self,
        routes: Sequence[SinkRoute],
        clock: Clock,
        retry_delays_s: Sequence[float] = RETRY_DELAYS_S,
        unsent: Mapping[str, Sequence[Notification]] | None = None,
    ) -> None:
        """
        Args:
            routes: the sinks.
            clock: for the rate limits.
            retry_delays_s: after each failure of a message.
            unsent: what the former program of this process left, by the names of the sinks.
        """
        self._queues = [_SinkQueue(route, clock, tuple(retry_delays_s)) for route in routes]
        for queue in self._queues:
            queue.go_on_with((unsent or {}).get(queue.name, ()))

    def __enter__(self) -> Self:
        for queue in self._queues:
            queue.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for queue in self._queues:
            queue.end()

    def states(self) -> tuple[GatewayState, ...]:
        """How each sink fares."""
        return tuple(queue.state() for queue in self._queues)

    def leave(self) -> dict[str, tuple[Notification, ...]]:
        """Send nothing more; what is not known to be sent by sink, for the program that follows."""
        return {queue.name: queue.leave() for queue in self._queues}

    def example(self) -> dict[str, tuple[Notification, ...]]:
        """What `leave` may return."""
        alert = Alert(
            id=0,
            kind=AlertKind.CRASHED,
            component_id=None,
            severity=Severity.CRITICAL,
            message="",
            opened_at_wall_ms=0,
            last_at_wall_ms=0,
        )
        return {
            queue.name: (Notification(happening=Happening.OPENED, alert=alert),) for queue in self._queues
        }

    def tell(self, message: object) -> None:
        """Receive an event."""
        if isinstance(message, AlertChanged):
            notification = Notification(happening=message.happening, alert=message.alert)
            for queue in self._queues:
                queue.take(notification)


class _SinkQueue:
    """One sink's queue and thread."""

    def __init__(self, route: SinkRoute, clock: Clock, delays: tuple[float, ...]) -> None:
        self._route = route
        self.name = route.name
        self._clock = clock
        self._delays = delays
        self._waiting: deque[Notification] = deque()
        self._rate = SinkRateLimit()
        self._changed = threading.Condition()
        self._current: Notification | None = None
        """The message that is being sent."""
        self._ended = self._is_left = False
        self._failing = False
        """Whether the log says that the sink fails."""
        self._delivered = self._dropped = 0
        self._problem: str | None = None
        """Why the latest attempt failed."""
        self._since_wall_ms = now_ms()
        self._thread = threading.Thread(target=self._run, name="rekindle-alerts", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def go_on_with(self, unsent: Sequence[Notification]) -> None:
        self._waiting.extend(unsent)

    def leave(self) -> tuple[Notification, ...]:
        with self._changed:
            self._ended = self._is_left = True
            self._changed.notify()
            current = () if self._current is None else (self._current,)
            return (*current, *self._waiting)

    def end(self) -> None:
        """Send nothing more; the current message may finish, for a moment."""
        with self._changed:
            self._ended = True
            unsent = len(self._waiting)
            self._changed.notify()
        if unsent:
            logger.warning(
                "alerts: messages for {} left unsent at the end: {}", str(self._route.sink), unsent
            )
        self._thread.join(1.0)

    def state(self) -> GatewayState:
        """Whether the receiver takes what it is sent; a sink that has sent nothing yet has no problem."""
        return GatewayState(
            name=f"alert sink {self._route.name}".rstrip(),
            connected=self._problem is None,
            detail=self._problem or "",
            since_wall_ms=self._since_wall_ms,
            delivered=self._delivered,
            dropped=self._dropped,
            waiting=len(self._waiting),
        )

    def take(self, notification: Notification) -> None:
        """Queue a notification, if the filter and the rate limit allow it; never blocks."""
        if not self._route.filter.wants(notification):
            return
        with self._changed:
            withheld = self._rate.withheld
            now = self._clock.monotonic()
            self._rate, admitted = self._rate.admit(now, self._route.filter.per_minute)
            if not admitted:
                return
            self._waiting.append(replace(notification, withheld=withheld))
            if len(self._waiting) > MOST_WAITING:
                self._waiting.popleft()
                self._dropped += 1
                logger.warning(
                    "alerts: {} is too slow; its oldest message was dropped", str(self._route.sink)
                )
            self._changed.notify()

    def _run(self) -> None:
        while (notification := self._next()) is not None:
            self._deliver(notification)
            with self._changed:
                self._current = None

    def _next(self) -> Notification | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._ended)
            self._current = None if self._ended else self._waiting.popleft()
            return self._current

    def _deliver(self, notification: Notification) -> None:
        alert, sink = notification.alert.id, str(self._route.sink)
        for delay in (*self._delays, None):
            failure = self._try(notification)
            self._note(None if failure is None else masked_text(str(failure).rstrip(": ") or repr(failure)))
            if failure is None:
                self._failing = False
                self._delivered += 1
                return
            if delay is not None and not self._failing:
                self._failing = True
                logger.warning("alerts: alert {} is sent again to {}: {}", alert, sink, repr(failure))
            if delay is None or self._pause(delay):
                if self._is_left:
                    return
                self._dropped += 1
                logger.warning("alerts: alert {} was not sent to {}: {}", alert, sink, repr(failure))
                return

    def _note(self, problem: str | None) -> None:
        if (problem is None) != (self._problem is None):
            self._since_wall_ms = now_ms()
        self._problem = problem

    def _try(self, notification: Notification) -> Exception | None:
        """Send it; returns the error, if there was one."""
        try:
            self._route.sink.send(notification)
        except Exception as error:  # noqa: BLE001  # an error of a sink must not keep the next message from being sent
            return error
        return None

    def _pause(self, seconds: float) -> bool:
        """Wait; returns whether the notifier ended meanwhile."""
        with self._changed:
            return self._changed.wait_for(lambda: self._ended, seconds)
