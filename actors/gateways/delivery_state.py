"""Whether the other side of an outgoing gateway takes what it is sent, and the name of what is sent."""

from __future__ import annotations

import secrets
import time

from loguru import logger

from ..errors import RekindleError
from ..messages import GatewayLost, GatewayRestored
from .event_source import EventSource


class DeliveryState:
    """The latest outcome; each change is logged and published once."""

    def __init__(
        self,
        source: EventSource,
        name: str,
        *,
        goods: str,
        meanwhile: str,
        server: str = "",
        problem: str = "",
    ) -> None:
        """Begin.

        Args:
            name: the name of the gateway.
            goods: what it delivers, for the log.
            meanwhile: what happens to it while it is not delivered.
            problem: why nothing is delivered yet.
        """
        self.server = server
        self.problem: str | None = problem or None
        self.since_wall_ms = now_ms()
        self._source = source
        self._name = name
        self._goods = goods
        self._meanwhile = meanwhile
        self._is_reported = False

    @property
    def detail(self) -> str:
        """The server, or why it takes nothing."""
        return self.server if self.problem is None else self.problem

    def succeeded(self) -> None:
        """The server accepted something."""
        if self.problem is None:
            return
        self.problem, self.since_wall_ms = None, now_ms()
        logger.info("{}: {} are delivered: server={}", self._name, self._goods, self.server)
        if self._is_reported:
            self._is_reported = False
            self._announce(GatewayRestored(self._name, self.server))

    def failed(self, reason: str) -> None:
        """The server does not accept anything."""
        if self.problem is None:
            self.since_wall_ms = now_ms()
        self.problem = reason
        if not self._is_reported:
            self._is_reported = True
            logger.warning(
                "{}: {} are not delivered and {}: {}", self._name, self._goods, self._meanwhile, reason
            )
            self._announce(GatewayLost(self._name, reason))

    def _announce(self, event: GatewayLost | GatewayRestored) -> None:
        try:
            self._source.announce(event)
        except RekindleError as error:
            logger.debug("{}: {} was not published: {}", self._name, type(event).__name__, str(error))


def stored_origin(source: EventSource, key: str, *, size: int) -> str:
    """The name that distinguishes this store from every other one; made once, and stored under the key."""
    notes = source.notes()
    known = notes.get(key)
    if known is not None:
        return known
    made = secrets.token_hex(size)
    notes.set(key, made)
    return made


def now_ms() -> int:
    """The wall clock."""
    return time.time_ns() // 1_000_000
