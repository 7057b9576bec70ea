"""Everything that Rekindle uses of pykka beyond its public API. No other module may.

Tested on pykka 4.4.2 and 4.5.0. These are the names, and why no public one does:

- `pykka._envelope.Envelope`: what an actor's inbox receives, a message with the future of its reply.
- `pykka.messages._ActorStop`: the message that `ActorRef.stop` sends. An actor that is stopped by others
  than its owner would just be silent, so it must be told apart.
- `Actor._create_actor_inbox`, `_create_future`, `_start_actor_loop`: what pykka asks "implementors of new
  actor types" to override. Our actors share threads, so they need an inbox and a loop of their own.
- `Actor._handle_receive`: stops the actor, serves a proxy, or calls `on_receive`.
- `Actor._actor_ref`: behind the public property `actor_ref`, which cannot be set.

`tests/unit/runtime/test_pykka_internals.py` fails when one of them changes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, cast

import pykka
from msgspec import structs
from pykka._envelope import Envelope
from pykka.messages import ProxyCall, ProxyGetAttr, ProxySetAttr, _ActorStop

__all__ = [
    "DirectInbox",
    "DirectRef",
    "Envelope",
    "ReplyReceiver",
    "actor_class",
    "end_actor",
    "handle_envelope",
    "use_ref",
]

A = TypeVar("A", bound=pykka.Actor)

HANDLED_BY_PYKKA = frozenset({ProxyCall, ProxyGetAttr, ProxySetAttr, _ActorStop})
"""Messages that never reach `on_receive`."""


class DirectInbox(Protocol):
    """An inbox that also takes a message without an envelope."""

    actor: pykka.Actor
    is_closed: bool
    """Its actor has stopped: nothing is delivered."""

    def put(self, envelope: Envelope[Any], /) -> None:
        """Queue an envelope."""

    def get(self) -> Envelope[Any]:
        """Part of pykka's protocol; the runtime hands envelopes to the actor instead."""
        ...

    def empty(self) -> bool:
        """Whether pykka has something to take out of it."""
        ...

    def put_message(self, message: Any, /) -> None:
        """Queue a message to which nothing replies."""


class DirectRef(pykka.ActorRef[A]):
    """A ref whose `tell` makes no envelope, which saves 7 % of a storm in virtual time."""

    def tell(self, message: Any) -> None:
        """Send a message.

        Raises:
            ActorDeadError: the actor has stopped.
        """
        inbox = cast("DirectInbox", self.actor_inbox)
        if inbox.is_closed or type(message) in HANDLED_BY_PYKKA:
            super().tell(message)
        else:
            inbox.put_message(message)


def use_ref(actor: pykka.Actor, ref: pykka.ActorRef[Any]) -> None:
    """Make this ref the actor's `actor_ref`."""
    actor._actor_ref = ref


class ReplyReceiver:
    """The receiver of the reply to a command that was asked: passes it on to the future of the caller."""

    def __init__(self, future: pykka.Future[Any], also: Any) -> None:
        self._future = future
        self._also = also
        self._lock = threading.Lock()
        self._is_set = False

    def tell(self, message: Any) -> None:
        """Take the reply; the future keeps the first one."""
        with self._lock:
            is_first, self._is_set = not self._is_set, True
        if is_first:
            self._future.set(message)
        if self._also is not None:
            self._also.tell(message)


class OwnStop(_ActorStop):
    """The stop by the owner of the actor: it ends an actor that refuses to be stopped by others."""


def end_actor(ref: pykka.ActorRef[Any]) -> None:
    """Stop an actor that belongs to the caller; does not wait, and does nothing if it has stopped."""
    ref.ask(OwnStop(), block=False)


def _refuses_to_stop(actor: pykka.Actor, message: object) -> bool:
    if not isinstance(message, _ActorStop) or isinstance(message, OwnStop):
        return False
    refuses: Callable[[], bool] | None = getattr(actor, "refuses_stop", None)
    return refuses is not None and refuses()


def handle_envelope(actor: pykka.Actor, envelope: Envelope[Any]) -> None:
    """Let the actor handle one envelope and send the reply, as pykka's own loop does."""
    reply_to = envelope.reply_to
    if actor.actor_stopped.is_set():
        if reply_to is not None:
            dead = pykka.ActorDeadError(f"{actor.actor_ref} stopped before handling the message")
            reply_to.set_exception((pykka.ActorDeadError, dead, None))
        return
    if reply_to is not None and "reply_to" in getattr(envelope.message, "__struct_fields__", ()):
        # The actor answers a command later, by a message to `reply_to`.
        asked = structs.replace(envelope.message, reply_to=ReplyReceiver(reply_to, envelope.message.reply_to))
        actor._handle_receive(asked)
        return
    try:
        refused = _refuses_to_stop(actor, envelope.message)
        response = None if refused else actor._handle_receive(envelope.message)
    except Exception:
        if reply_to is None:
            raise
        reply_to.set_exception()
    else:
        if reply_to is not None:
            reply_to.set(response)


def actor_class(actor: type[A], make_inbox: Callable[[], DirectInbox]) -> type[A]:
    """The same actor class with this inbox and without a thread; the inbox's owner runs it."""

    def start_loop(self: pykka.Actor) -> None:
        cast("DirectInbox", self.actor_inbox).actor = self
        self.on_start()

    body: dict[str, object] = {
        "__module__": actor.__module__,
        "__doc__": actor.__doc__,
        "ref_class": DirectRef,
        "_create_actor_inbox": staticmethod(make_inbox),
        "_create_future": staticmethod(pykka.ThreadingFuture),
        "_start_actor_loop": start_loop,
    }
    return cast("type[A]", type(actor.__name__, (actor,), body))
