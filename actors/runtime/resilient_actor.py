"""`ResilientActor`: the class of our actors, which survives exceptions in its handlers.

pykka ends an actor whose handler raises, and a `SystemExit` in one ends every actor of the process, those of
the host included; and any code of the process can stop it. A ResilientActor logs the exception, rebuilds its
state from the components that know it (its ref and its inbox stay valid), and handles the message once more.
A handler stores its new state before it acts on it, so that the second attempt does not repeat what was done.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from reprlib import Repr
from typing import Any, ClassVar, Never

import pykka
from loguru import logger

from ..messages import ActorReplaced, Refused
from ..ports import Receiver
from .pykka_internals import ReplyReceiver, use_ref

MOST_REFUSED = 1000
"""How many different messages are logged."""

_refused: set[tuple[str, str]] = set()
"""The types of actors and of the messages that they refused."""

_rebuilt: Counter[str] = Counter()

_repr = Repr()
_repr.maxstring = _repr.maxother = 200


def rebuilt(name: str) -> int:
    """How often an actor of that class was rebuilt in this process."""
    return _rebuilt[name]


def _short(message: object) -> str:
    return _repr.repr(message)


CORE = "core"
"""The lane of every actor that does not name another."""


class ResilientActor(pykka.ThreadingActor):
    """An actor that survives its own exceptions.

    Subclasses handle messages in `handle` and rebuild themselves in `recover`.
    """

    lane: ClassVar[str] = CORE
    ends_when_stopped: ClassVar[bool] = False
    """Whether `ActorRef.stop` ends the actor, and not only its system."""
    ref_class: ClassVar[type[pykka.ActorRef[Any]]] = pykka.ActorRef
    """The class of its ref; a runtime may set a faster one."""

    def __init__(self, *, persistence: Receiver | None = None) -> None:
        super().__init__()
        if self.ref_class is not pykka.ActorRef:
            use_ref(self, self.ref_class(self))
        self.persistence = persistence

    def handle(self, message: Any) -> None:
        """Handle one message; never block."""
        raise NotImplementedError

    def recover(self) -> None:
        """Rebuild the state after `handle` raised. An actor without state does nothing."""

    def dropped(self, message: Any) -> None:
        """Save what can be saved of a message that raised twice; must not raise. Does nothing for most."""

    def reports_replacement(self, message: Any) -> bool:
        """Whether an exception at this message is published; not for the report of another one."""
        return not isinstance(message, ActorReplaced)

    def on_receive(self, message: Any) -> None:
        """Handle the message; an exception rebuilds the state and never ends the actor."""
        try:
            self.handle(message)
        except BaseException as error:  # noqa: BLE001  # SystemExit would end the host's actors
            self._replace(message, error)

    def refuses_stop(self) -> bool:
        """Whether the actor continues although its ref, or the whole registry, was told to stop.

        Only its system ends it. Without it the others would wait forever for what it has to say, so a
        stop by others is treated like an exception: it is reported, and the state is rebuilt.
        """
        if self.ends_when_stopped:
            return False
        name = type(self).__name__
        logger.warning("runtime: {} was stopped from outside and is restarted; use `System.stop`", name)
        self._rebuild()
        tell(self.persistence, ActorReplaced(name, "stopped from outside"))
        return True

    def unexpected(self, message: Never) -> None:
        """Refuse a message that the actor does not handle; the type checker proves that we send none."""
        self.refuse(message)

    def refuse(self, message: object) -> None:
        """Log and forget a message that the actor does not know, such as a host's broadcast to all actors.

        Each type of message is logged once for each type of actor.
        """
        kinds = type(self).__name__, type(message).__qualname__
        if kinds in _refused or len(_refused) >= MOST_REFUSED:
            return
        _refused.add(kinds)
        with suppress(Exception):  # its `repr` is the host's, and so is the log
            logger.warning(
                "runtime: {} refuses a message that it does not know: {}", kinds[0], _short(message)
            )

    def _replace(self, message: Any, error: BaseException) -> None:
        """Rebuild the state, then handle the message once more: a death or a command must not get lost."""
        name, kind = type(self).__name__, type(message).__name__
        _log_error(error, "runtime: {} raised while handling {} and is restarted", name, kind)
        self._rebuild()
        try:
            self.handle(message)
        except BaseException as again:  # noqa: BLE001
            _log_error(again, "runtime: {} raised again, {} is dropped", name, kind)
            self._rebuild()
            self.dropped(message)
            reply_to = getattr(message, "reply_to", None)
            if isinstance(reply_to, ReplyReceiver):  # the caller waits for it
                reply_to.tell(Refused("an internal error prevented it; the log has the details"))
        if self.reports_replacement(message):
            tell(self.persistence, ActorReplaced(name, repr(error)))

    def _rebuild(self) -> None:
        _rebuilt[type(self).__name__] += 1
        try:
            self.recover()
        except BaseException as error:  # noqa: BLE001
            _log_error(error, "runtime: {} could not rebuild its state", type(self).__name__)


def _log_error(error: BaseException, template: str, *words: str) -> None:
    """Log an error. The log belongs to the host: if it raises, the actor is rebuilt all the same."""
    with suppress(Exception):
        logger.opt(exception=error).error(template, *words)


def tell(receiver: Receiver | None, message: object) -> bool:
    """Send a message to a receiver that may have stopped or may raise; whether it took the message."""
    if receiver is None:
        return False
    try:
        receiver.tell(message)
    except Exception as error:  # noqa: BLE001
        if not isinstance(error, pykka.ActorDeadError):
            _log_error(error, "runtime: a receiver raised when it was sent {}", type(message).__name__)
        return False
    return True
