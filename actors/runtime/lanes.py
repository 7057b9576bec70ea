"""Lanes: a queue and a thread that several actors share.

A thousand worker proxies do not need a thousand threads, and a message between two actors of one lane
wakes no thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import pykka
from loguru import logger

from .pykka_internals import Envelope, actor_class, handle_envelope
from .wakeup import Wakeup

A = TypeVar("A", bound=pykka.Actor)

Call = Callable[[], object]

Post = Callable[[Call], None]
"""Queues a call behind all calls that were posted before."""


def attempt(call: Call) -> None:
    """Make a call and log its exception, so that the calls behind it are still made."""
    try:
        call()
    except BaseException as error:  # noqa: BLE001  # SystemExit must not end the thread
        with suppress(Exception):  # the log belongs to the host and may raise as well
            logger.opt(exception=error).error("runtime: a call raised, the thread continues")


class _LaneThread(threading.Thread):
    """The thread of a lane."""


def is_on_lane() -> bool:
    """Whether the caller runs on a lane, where waiting for an actor would stop all actors of the lane."""
    return isinstance(threading.current_thread(), _LaneThread)


class Lane:
    """One queue of calls and the thread that makes them. Any thread may post, a signal handler too."""

    def __init__(self, name: str) -> None:
        self._calls: deque[Call] = deque()
        self._wakeup = Wakeup()
        self._is_closed = False
        self._thread = _LaneThread(target=self._run, name=f"rekindle-{name}", daemon=True)
        self._thread.start()

    def post(self, call: Call) -> None:
        """Have a call made, after all that were posted before."""
        self._calls.append(call)
        self._wakeup.set()

    @property
    def length(self) -> int:
        """How many calls wait."""
        return len(self._calls)

    def pass_through(self, timeout_s: float) -> bool:
        """Wait until everything that was posted before is done; whether that was so in time."""
        done = threading.Event()
        self.post(done.set)
        return done.wait(timeout_s)

    def close(self, timeout_s: float) -> bool:
        """Make the calls that are queued, then end the thread; whether it ended in time."""
        self._is_closed = True
        self._wakeup.set()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._is_closed or self._calls:
            self._wakeup.wait()
            while self._calls:
                attempt(self._calls.popleft())


class LaneInbox:
    """An actor's inbox: every message becomes a call in the queue of the actor's lane."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self.is_closed = False
        """Its actor has stopped: nothing is delivered."""
        self.actor: pykka.Actor

    def put(self, envelope: Envelope[Any], /) -> None:
        """Queue an envelope."""
        self._post(partial(self._handle, envelope))

    def put_message(self, message: Any) -> None:
        """Queue a message to which nothing replies."""
        self._post(partial(self._deliver, message))

    def get(self) -> Envelope[Any]:
        """Not used: the lane hands envelopes to the actor."""
        raise NotImplementedError

    def empty(self) -> bool:
        """Always: the lane holds the messages."""
        return True

    def _handle(self, envelope: Envelope[Any]) -> None:
        try:
            handle_envelope(self.actor, envelope)
        finally:
            self.is_closed = self.actor.actor_stopped.is_set()

    def _deliver(self, message: Any) -> None:
        if not self.is_closed:
            self.actor.on_receive(message)


def lane_actor(actor: type[A], post: Post) -> type[A]:
    """The same actor class, run by the lane that `post` belongs to."""
    return actor_class(actor, lambda: LaneInbox(post))
