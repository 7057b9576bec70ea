"""The Broker: who listens, and tells them.

Owns the list of listeners. Hears events from our own actors and tells them on, in order.
A listener is anything with `tell`: a host's pykka ref, or an edge's inbox. One that is gone
or that raises costs the others nothing.
"""

from __future__ import annotations

from loguru import logger

from .internal_messages import BrokerMessage, Subscribe, Unsubscribe
from .messages import Event
from .ports import Receiver
from .runtime import ResilientActor, tell


class Broker(ResilientActor):
    """Tells every event to everyone who asked for it."""

    def __init__(self) -> None:
        super().__init__()
        self.broker = self.actor_ref
        self._listeners: tuple[Receiver, ...] = ()

    def handle(self, message: BrokerMessage) -> None:
        """Keep the list, or tell an event on."""
        match message:
            case Subscribe(receiver=receiver):
                self._listeners = (*self._without(receiver), receiver)
            case Unsubscribe(receiver=receiver):
                self._listeners = self._without(receiver)
            case event:
                gone = [each for each in self._listeners if not _took(each, event)]
                for each in gone:
                    self._listeners = self._without(each)

    def _without(self, receiver: Receiver) -> tuple[Receiver, ...]:
        return tuple(each for each in self._listeners if each is not receiver)


def _took(listener: Receiver, event: Event) -> bool:
    try:
        return tell(listener, event)
    except BaseException as error:  # noqa: BLE001  # one that wants to exit must not silence the others
        logger.opt(exception=error).warning("a listener ended over {}", type(event).__name__)
        return False
