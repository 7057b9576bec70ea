"""Where our actors live: pykka actors on a few shared threads ("lanes"), with the real clock.

Every message to an actor of a lane goes into the lane's one queue, and is handled in that order by
one thread at a time. A thousand proxies need no thousand threads, and a message between two actors
of one lane costs no wake-up. That works because no handler of ours blocks; those that must (the
persistence actor, which commits) have lanes of their own, whose threads help with what they tell the others.

`ResilientActor` is what our actors derive from. pykka ends an actor whose handler raises, and
`SystemExit` in one ends every actor of the process, the host's included. Here the exception
stops at the actor: it is reported, the actor is made anew in place (its ref and its inbox stay
good), rebuilds its state from those who know, and takes the message once more. A handler puts a
new state in place before it acts on it, so that what was done already is not done again.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, ClassVar, Never

import pykka
from loguru import logger

from ..messages import ActorReplaced
from ..ports import Receiver

CORE = "core"
"""The lane of every actor that names no other."""


class ResilientActor(pykka.ThreadingActor):
    """An actor that outlives its own mistakes.

    Subclasses handle messages in `handle` and rebuild themselves in `recover`.
    """

    lane: ClassVar[str] = CORE
    ref_class: ClassVar[type[pykka.ActorRef[Any]]] = pykka.ActorRef
    """What others hold of it; a runtime may have one that is quicker."""

    def __init__(self, *, broker: Receiver | None = None) -> None:
        super().__init__()
        if self.ref_class is not pykka.ActorRef:
            self._actor_ref = self.ref_class(self)
        self.broker = broker

    def handle(self, message: Any) -> None:
        """Handle one message; never block."""
        raise NotImplementedError

    def recover(self) -> None:  # an actor without state has nothing to rebuild
        """Rebuild the state after `handle` raised."""

    def dropped(self, message: Any) -> None:  # most messages are not worth more than a word in the log
        """Save what can be saved of a message that cannot be handled; must not raise."""

    def on_receive(self, message: Any) -> None:
        """Handle the message; an exception has the state rebuilt, never ends the actor."""
        try:
            self.handle(message)
        except BaseException as error:  # noqa: BLE001  # SystemExit here would end the host's actors
            self._replace(message, error)

    def unexpected(self, message: Never) -> None:
        """Note a message that nobody should have sent; the type checker proves that we do not."""
        logger.warning("{} does not understand {!r}", type(self).__name__, message)

    def _replace(self, message: Any, error: BaseException) -> None:
        """Rebuild the state, then try the message once more: a death or a command must not get lost."""
        name, kind = type(self).__name__, type(message).__name__
        _log_error(error, "{} raised while handling {} and is made anew", name, kind)
        self._rebuild()
        try:
            self.handle(message)
        except BaseException as again:  # noqa: BLE001
            _log_error(again, "{} raised again, {} is dropped", name, kind)
            self._rebuild()
            self.dropped(message)
        if not isinstance(message, ActorReplaced):
            tell(self.broker, ActorReplaced(name, repr(error)))

    def _rebuild(self) -> None:
        try:
            self.recover()
        except BaseException as error:  # noqa: BLE001
            _log_error(error, "{} could not be rebuilt", type(self).__name__)


def _log_error(error: BaseException, template: str, *words: str) -> None:
    """Log an error; the log is the host's, may raise itself, and must not keep anybody from being rebuilt."""
    with suppress(Exception):
        logger.opt(exception=error).error(template, *words)


def tell(receiver: Receiver | None, message: object) -> bool:
    """Tell a receiver that may be gone, or that misbehaves; whether it took the message."""
    if receiver is None:
        return False
    try:
        receiver.tell(message)
    except Exception as error:  # noqa: BLE001
        if not isinstance(error, pykka.ActorDeadError):
            _log_error(error, "a receiver refused {}", type(message).__name__)
        return False
    return True
