"""Where threads that are not actors meet the actors: an inbox to wait on."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from queue import Empty
from types import TracebackType
from typing import Any, Self

from ..errors import RequestTimeoutError
from ..runtime.mailbox import Mailbox


class Inbox:
    """Takes messages from actors for a thread that waits."""

    def __init__(self) -> None:
        self._queue: Mailbox[Any] = Mailbox()

    def tell(self, message: Any) -> None:
        """Deliver a message."""
        self._queue.put(message)

    def get(self, timeout_s: float) -> Any:
        """The next message.

        Raises:
            RequestTimeoutError: none came in time.
        """
        try:
            return self._queue.get(timeout_s)
        except Empty:
            raise RequestTimeoutError(f"no answer within {timeout_s:g} s") from None


MOST_UNREAD = 10_000


class LatestInbox:
    """Takes messages for a thread that may not keep up: the oldest are dropped, the newest kept."""

    def __init__(self, most: int = MOST_UNREAD) -> None:
        self._unread: deque[Any] = deque()
        self._most = most
        self._came = threading.Condition(threading.Lock())
        self.dropped = 0

    def tell(self, message: Any) -> None:
        """Deliver a message."""
        with self._came:
            if len(self._unread) >= self._most:
                self._unread.popleft()
                self.dropped += 1
            self._unread.append(message)
            self._came.notify()

    def get(self, timeout_s: float) -> Any:
        """The next message.

        Raises:
            RequestTimeoutError: none came in time.
        """
        with self._came:
            if not self._came.wait_for(lambda: self._unread, max(0.0, timeout_s)):
                raise RequestTimeoutError(f"no answer within {timeout_s:g} s")
            return self._unread.popleft()


class EventStream:
    """Everything that happens from now on; iterate over it, or wait for something in it.

    Use it as a context manager, so that the actors stop filling it.
    """

    def __init__(self, inbox: LatestInbox, end: Callable[[], None]) -> None:
        self._inbox = inbox
        self._end = end

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def dropped(self) -> int:
        """How many events were dropped because they were not read in time."""
        return self._inbox.dropped

    def close(self) -> None:
        """End the subscription."""
        self._end()

    def next(self, timeout_s: float) -> Any:
        """The next event; of a stream of topics a `Snapshot`, then `StateChanged` and `Published`.

        Raises:
            RequestTimeoutError: nothing happened in that time.
        """
        return self._inbox.get(timeout_s)

    def until(self, wanted: Callable[[Any], bool], timeout_s: float) -> Any:
        """Skip to the first event that is wanted.

        Raises:
            RequestTimeoutError: it did not come in time.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            event = self.next(deadline - time.monotonic())
            if wanted(event):
                return event

    def within(self, seconds: float) -> Iterator[Any]:
        """All events of the next seconds."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            try:
                yield self.next(left)
            except RequestTimeoutError:
                return
