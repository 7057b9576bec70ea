"""Lanes: queues that several actors share, each worked off by one thread at a time.

A lane has a thread of its own. A thread that has other work, too, may help: what it posts to the
lane it does itself when it is done with its own, unless somebody else is at it. So the news of a
death goes from the thread that saw it through all actors of the lane without waking anybody, which
takes longer on an idle machine than all of them together. Who helps does so within bounds, and a
helper that is busy holds nobody up: the lane's own thread does what others post.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from threading import get_ident
from typing import Any, TypeVar, cast

import pykka
from loguru import logger
from pykka._envelope import Envelope
from pykka.messages import ProxyCall, ProxyGetAttr, ProxySetAttr, _ActorStop

from .wakeup import Wakeup

A = TypeVar("A", bound=pykka.Actor)

Call = Callable[[], object]

Post = Callable[[Call], None]
"""Has a call made on a lane, after all that were posted before."""

PYKKA_MESSAGES = frozenset({ProxyCall, ProxyGetAttr, ProxySetAttr, _ActorStop})
"""Messages that pykka itself handles."""

MOST_HELP = 64
"""So many calls a helper makes before it goes back to its own work."""

LEISURE_S = 0.002
"""After so long without anything to do a lane does what can wait: by then a process that it had started
is on its way, and does not have to wait for us to let go of the interpreter."""

MOST_AT_LEISURE = 8
"""So much may wait for that at the most, while there is no end of other things to do."""


def attempt(call: Call) -> None:
    """Make a call; one misfortune must not keep the others from being made."""
    try:
        call()
    except BaseException as error:  # noqa: BLE001  # one that wants to exit must not take us along
        _report(error)


def _report(error: BaseException) -> None:
    with suppress(Exception):  # the log is the host's, and may raise as well
        logger.opt(exception=error).error("the supervisor met an error and goes on")


_helped_by: dict[int, Lane] = {}
"""The lane that a thread helps, by the thread's number."""


def wake_lane() -> None:
    """Before this thread waits for an answer: the lane that it helps, if any, is to do without it."""
    lane = _helped_by.get(get_ident())
    if lane is not None:
        lane.ring()


class Lane:
    """One queue and one thread, and those who help it."""

    def __init__(self, name: str, helped: Lane | None = None) -> None:
        """A lane whose own thread helps another one after every call, if there is one to be helped."""
        self._helped = helped
        self._calls: deque[Call] = deque()
        self._turn = threading.Lock()
        """Held by whoever makes the calls."""
        self._wakeup = Wakeup()
        self._at_leisure: deque[Call] = deque()
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name=f"rekindle-{name}", daemon=True)
        self._thread.start()

    def post(self, call: Call) -> None:
        """Have a call made."""
        self._calls.append(call)
        # In this order: whoever gives the baton back looks for calls then.
        if _helped_by.get(get_ident()) is not self:
            self.ring()

    def at_leisure(self, call: Call) -> None:
        """Have a call made once there was nothing else to do for a moment, or once many such calls wait."""
        self._at_leisure.append(call)
        if len(self._at_leisure) >= MOST_AT_LEISURE:
            self._take_leisure()
        if get_ident() != self._thread.ident:
            self._wakeup.set()  # else it looks by itself, before it waits

    def help(self) -> None:
        """Make the calls that there are, unless somebody else does; for helpers, soon after they posted."""
        if not self._calls:
            return
        self._make_calls(MOST_HELP)
        self.ring()

    @contextmanager
    def helper(self) -> Iterator[None]:
        """Let this thread post without waking the lane's own: it promises to help soon, each time."""
        me = get_ident()
        _helped_by[me] = self
        try:
            yield
        finally:
            # Another thread may be given this number.
            del _helped_by[me]
            self.help()

    def close(self, timeout_s: float) -> bool:
        """End the thread once all that was posted is done; whether it ended in time."""
        self._is_over = True
        self._wakeup.set()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def ring(self) -> None:
        """Have the lane's own thread make the calls that there are, unless somebody else does."""
        if self._calls and not self._turn.locked() and not self._wakeup.is_set:
            self._wakeup.set()

    def _run(self) -> None:
        if self._helped is None:
            self._work()
            return
        with self._helped.helper():
            self._work()

    def _work(self) -> None:
        while not self._is_over:
            self._wait()
            self._make_calls(sys.maxsize)
        self._make_calls(sys.maxsize)
        while self._at_leisure:
            self._take_leisure()
            self._make_calls(sys.maxsize)

    def _wait(self) -> None:
        """Wait for the bell, or for leisure if there is something to be done then."""
        if not self._at_leisure:
            self._wakeup.wait()
        elif not self._wakeup.wait(LEISURE_S):
            self._take_leisure()

    def _take_leisure(self) -> None:
        with suppress(IndexError):  # others may take some of it meanwhile
            while True:
                self._calls.append(self._at_leisure.popleft())

    def _make_calls(self, most: int) -> None:
        """Make so many calls at the most, unless somebody else does.

        Whoever posts while the baton is held leaves the call to its holder, who therefore looks once
        more after giving it back.
        """
        while self._calls and most > 0 and self._turn.acquire(blocking=False):
            try:
                while self._calls and most > 0:
                    most -= 1
                    call = self._calls.popleft()
                    try:  # what `attempt` does, without a frame for each message of a death
                        call()
                    except BaseException as error:  # noqa: BLE001
                        _report(error)
                    if self._helped is not None:
                        self._helped.help()
            finally:
                self._turn.release()


class LaneInbox:
    """An actor's inbox that is a place in its lane's queue."""

    def __init__(self, post: Post) -> None:
        self.post = post
        self.is_closed = False
        """Its actor has stopped: nothing is delivered any more."""
        self.actor: pykka.Actor

    def put(self, envelope: Envelope[Any], /) -> None:
        """Queue an envelope."""
        self.post(partial(self._take, envelope))

    def deliver(self, message: Any) -> None:
        """Hand over what was told, when its turn has come."""
        if not self.is_closed:
            self.actor.on_receive(message)

    def _take(self, envelope: Envelope[Any]) -> None:
        try:
            take(self.actor, envelope)
        finally:
            self.is_closed = self.actor.actor_stopped.is_set()

    def get(self) -> Envelope[Any]:
        """Nobody takes from here: the lane hands envelopes to the actor."""
        raise NotImplementedError

    def empty(self) -> bool:
        """A lane keeps nothing back for an actor."""
        return True


class LaneRef(pykka.ActorRef[A]):
    """A ref whose `tell` queues the message as it is: who is told needs no envelope to answer by."""

    def tell(self, message: Any) -> None:
        """Send a message.

        Raises:
            ActorDeadError: there is nobody any more.
        """
        inbox = self.actor_inbox
        assert isinstance(inbox, LaneInbox)
        if inbox.is_closed or type(message) in PYKKA_MESSAGES:
            super().tell(message)
        else:
            inbox.post(partial(inbox.deliver, message))


def take(actor: pykka.Actor, envelope: Envelope[Any]) -> None:
    """Let the actor handle one envelope, replies and dead actors included, as pykka's own loop does."""
    reply_to = envelope.reply_to
    if actor.actor_stopped.is_set():
        if reply_to is not None:
            dead = pykka.ActorDeadError(f"{actor.actor_ref} stopped before handling the message")
            reply_to.set_exception((pykka.ActorDeadError, dead, None))
        return
    try:
        response = actor._handle_receive(envelope.message)
    except Exception:
        if reply_to is None:
            raise
        reply_to.set_exception()
    else:
        if reply_to is not None:
            reply_to.set(response)


def housed(actor: type[A], post: Post) -> type[A]:
    """The same actor class, living where `post` delivers."""

    def start_loop(self: pykka.Actor) -> None:
        inbox = self.actor_inbox
        assert isinstance(inbox, LaneInbox)
        inbox.actor = self
        self.on_start()

    body: dict[str, object] = {
        "__module__": actor.__module__,
        "__doc__": actor.__doc__,
        "ref_class": LaneRef,
        "_create_actor_inbox": staticmethod(lambda: LaneInbox(post)),
        "_create_future": staticmethod(pykka.ThreadingFuture),
        "_start_actor_loop": start_loop,
    }
    return cast("type[A]", type(actor.__name__, (actor,), body))
