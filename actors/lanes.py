"""Lanes: threads that several actors share, each with one queue of what is to be done."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar, cast

import pykka
from pykka._envelope import Envelope
from pykka.messages import ProxyCall, ProxyGetAttr, ProxySetAttr, _ActorStop

from .loop import Call, attempt

A = TypeVar("A", bound=pykka.Actor)

Post = Callable[[Call], None]
"""Has a call made on a lane, after all that were posted before."""

OF_PYKKA = frozenset({ProxyCall, ProxyGetAttr, ProxySetAttr, _ActorStop})
"""Messages that pykka itself handles."""


class Lane:
    """One thread and one queue."""

    def __init__(self, name: str) -> None:
        self._queue: SimpleQueue[Call | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"rekindle-{name}", daemon=True)
        self._thread.start()

    def post(self, call: Call) -> None:
        """Have a call made."""
        self._queue.put(call)

    def close(self, timeout_s: float) -> bool:
        """End the thread once it has done what was posted; whether it ended in time."""
        self._queue.put(None)
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (call := self._queue.get()) is not None:
            attempt(call)


class LaneInbox:
    """An actor's inbox that is a place in its lane's queue."""

    def __init__(self, post: Post) -> None:
        self.post = post
        self.actor: pykka.Actor

    def put(self, envelope: Envelope[Any], /) -> None:
        """Queue an envelope."""
        self.post(partial(take, self.actor, envelope))

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
        if self.actor_stopped.is_set() or type(message) in OF_PYKKA:
            super().tell(message)
            return
        inbox = self.actor_inbox
        assert isinstance(inbox, LaneInbox)
        inbox.post(partial(_deliver, inbox.actor, message))


def _deliver(actor: pykka.Actor, message: Any) -> None:
    if not actor.actor_stopped.is_set():
        actor.on_receive(message)


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
