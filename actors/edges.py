"""Where threads that are no actors meet the actors: an inbox to wait on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Self

from .errors import RequestTimeoutError
from .messages import Event


class Inbox:
    """Takes messages from actors for a thread that waits."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Any] = SimpleQueue()

    def tell(self, message: Any) -> None:
        """Deliver a message."""
        self._queue.put(message)

    def get(self, timeout_s: float) -> Any:
        """The next message.

        Raises:
            RequestTimeoutError: none came in time.
        """
        try:
            return self._queue.get(timeout=max(0.0, timeout_s))
        except Empty:
            raise RequestTimeoutError(f"no answer within {timeout_s:g} s") from None


class EventStream:
    """Everything that happens from now on; iterate over it, or wait for something in it.

    Use it as a context manager, so that the actors stop filling it.
    """

    def __init__(self, inbox: Inbox, end: Callable[[], None]) -> None:
        self._inbox = inbox
        self._end = end

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hear no more."""
        self._end()

    def next(self, timeout_s: float) -> Event:
        """The next event.

        Raises:
            RequestTimeoutError: nothing happened in that time.
        """
        event: Event = self._inbox.get(timeout_s)
        return event

    def until(self, wanted: Callable[[Event], bool], timeout_s: float) -> Event:
        """Skip to the first event that is wanted.

        Raises:
            RequestTimeoutError: it did not come in time.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            event = self.next(deadline - time.monotonic())
            if wanted(event):
                return event

    def within(self, seconds: float) -> Iterator[Event]:
        """All events of the next seconds."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            try:
                yield self.next(left)
            except RequestTimeoutError:
                return
