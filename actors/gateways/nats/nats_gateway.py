"""The NATS gateway: tells every event to a NATS server, and takes orders from it where that is enabled.

It lives on a thread of its own. The supervisor tells it events and never waits for it: a server
that is down, gone, slow, frozen or full costs nothing but the events that core NATS could not
carry meanwhile, which are counted. That the server is away is said once, and that it is back.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from loguru import logger

from ...errors import RekindleError
from ...messages import GatewayLost, GatewayRestored, Published, Snapshot
from ...messages.topics import ALL_EVENTS
from ..gateway_errors import GatewayError
from ..gateway_state import GatewayState
from ..server_identity import Identity
from ..serving.call_pools import Lanes
from ..settings.nats_settings import NatsSettings
from .backlog import Backlog
from .connection_options import check, connect, shown
from .delivery import POSITION, Delivery
from .event_feed import Feed
from .nats_commands import Answering
from .nats_link import LinkError
from .nats_message import Shaping

NAME = "nats"
START_S = 10.0
GRACE_S = 1.0
"""How long what is left may take to be delivered once the gateway stops."""
JOIN_S = 0.2
STOP_S = 5.0
RECONNECT_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""How long to wait before the next attempt; the last one repeats."""
ORIGIN = "nats_origin"
"""The setting that tells this log of events from every other one."""


class NatsGateway:
    """One connection to NATS, kept up. Use it as a context manager, or call `start` and `stop`."""

    def __init__(self, feed: Feed, settings: NatsSettings, identity: Identity) -> None:
        """Describe a gateway; nothing runs yet.

        Raises:
            MissingExtraError: nats-py is not installed.
            GatewayError: a file that the settings name is missing or unsafe.
        """
        check(settings)
        self._feed = feed
        self._settings = settings
        self._identity = identity
        self._process = os.getpid()
        self._life = threading.Lock()
        self._placed = threading.Event()
        self._backlog: Backlog | None = None
        self._core: _Core | None = None
        self._thread: threading.Thread | None = None
        self._health = _Health(feed)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Deliver every event from now on, whether a server is there yet or not.

        Raises:
            GatewayError: the gateway cannot begin.
        """
        with self._life:
            if self._thread is not None:
                return
            # First: what is told from here on is in the backlog, whenever the thread begins.
            self._feed.subscribe(self, ALL_EVENTS)
            if not self._placed.wait(START_S) or self._backlog is None:
                self._feed.unsubscribe(self)
                raise GatewayError("the NATS gateway hears nothing of the events")
            self._core = _Core(self._feed, self._settings, self._identity, self._backlog, self._health)
            self._thread = threading.Thread(target=self._core.run, name="rekindle-nats", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Deliver what is there within `GRACE_S`, then end. A second call does nothing, nor one in a fork."""
        if os.getpid() != self._process:
            return
        with self._life:
            if self._thread is None or self._core is None:
                return
            self._hear_the_last()
            self._feed.unsubscribe(self)
            self._core.end()
            self._thread.join(STOP_S)
            if self._thread.is_alive():
                logger.error("the NATS gateway did not end within {} s", STOP_S)
            self._thread = None

    def _hear_the_last(self) -> None:
        """Wait for what the Broker has been told already: its next snapshot comes after that."""
        self._placed.clear()
        try:
            self._feed.subscribe(self, ALL_EVENTS)
        except RekindleError:
            return  # the system has ended, and tells nothing any more
        self._placed.wait(GRACE_S)

    def tell(self, message: object) -> None:
        """Take an event in; on the Broker's thread, which never waits here."""
        match message:
            case Snapshot(last_id=last_id):
                if self._backlog is None:
                    self._backlog = Backlog(
                        self._settings.most_waiting, delivered=self._delivered(last_id), newest=last_id
                    )
                self._placed.set()
            case Published(record=record) if self._backlog is not None:
                self._backlog.add(record)
                if self._core is not None:
                    self._core.look()
            case _:
                pass

    def state(self) -> GatewayState:
        """How it is."""
        backlog, delivery = self._backlog, None if self._core is None else self._core.delivery
        dropped = 0 if backlog is None or self._settings.jetstream else backlog.dropped
        return GatewayState(
            name=NAME,
            connected=self._health.trouble is None,
            detail=self._health.server if self._health.trouble is None else self._health.trouble,
            since_wall_ms=self._health.since_wall_ms,
            delivered=0 if delivery is None else delivery.delivered,
            dropped=dropped + (0 if delivery is None else delivery.given_up),
            waiting=0 if backlog is None else backlog.waiting,
        )

    def _delivered(self, last_id: int) -> int:
        """The last event that is no business of ours: the first time everything that was before."""
        if not self._settings.jetstream:
            return last_id
        notes = self._feed.notes()
        remembered = notes.get(POSITION)
        if remembered is None or not remembered.isdecimal():
            # At once: if we are killed before anything is stored, the next run begins here too.
            notes.set(POSITION, str(last_id))
            return last_id
        return min(int(remembered), last_id)


class _Health:
    """Whether the server takes what it is sent; a change is said once."""

    def __init__(self, feed: Feed) -> None:
        self.server = ""
        self.trouble: str | None = "not connected yet"
        self.since_wall_ms = _now_ms()
        self._feed = feed
        self._said = False

    def well(self) -> None:
        """The server took something."""
        if self.trouble is None:
            return
        self.trouble, self.since_wall_ms = None, _now_ms()
        logger.info("events are delivered to {}", self.server)
        if self._said:
            self._said = False
            self._announce(GatewayRestored(NAME, self.server))

    def unwell(self, reason: str) -> None:
        """It takes nothing, and why."""
        if self.trouble is None:
            self.since_wall_ms = _now_ms()
        self.trouble = reason
        if not self._said:
            self._said = True
            logger.warning("events are not delivered to NATS, and wait: {}", reason)
            self._announce(GatewayLost(NAME, reason))

    def _announce(self, event: GatewayLost | GatewayRestored) -> None:
        try:
            self._feed.announce(event)
        except RekindleError as error:
            logger.debug("nobody heard of it: {}", str(error))


class _Core:
    """What runs on the gateway's thread."""

    def __init__(
        self, feed: Feed, settings: NatsSettings, identity: Identity, backlog: Backlog, health: _Health
    ) -> None:
        self.delivery: Delivery | None = None
        self._feed = feed
        self._settings = settings
        self._identity = identity
        self._backlog = backlog
        self._health = health
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending = threading.Event()
        self._woken = False
        self._failures = 0

    # ── from other threads ───────────────────────────────────────────────────────────────

    def look(self) -> None:
        """There is something new in the backlog; who is not there yet finds it when it begins."""
        if not self._woken and self._loop is not None:
            self._woken = True
            self._call(self._look)

    def end(self) -> None:
        """Deliver what is there, and end."""
        self._ending.set()
        self._call(self._end)

    def _call(self, call: Callable[[], None]) -> None:
        if self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(call)
            except RuntimeError:
                return  # it has ended

    # ── on the gateway's thread ──────────────────────────────────────────────────────────

    def run(self) -> None:
        """Live until the end."""
        try:
            asyncio.run(self._main())
        except BaseException as error:  # noqa: BLE001  # nothing of ours may reach the host
            logger.opt(exception=error).error("the NATS gateway has ended")
            self._health.unwell("the gateway has ended; the log has more")

    def _look(self) -> None:
        self._woken = False  # first: whatever comes from here on wakes us again
        assert self.delivery is not None
        self.delivery.look()

    def _end(self) -> None:
        assert self.delivery is not None
        self.delivery.end()

    async def _main(self) -> None:
        lanes = Lanes()
        shaping = Shaping(self._settings, _origin(self._feed))
        self.delivery = delivery = Delivery(self._feed, self._settings, shaping, self._backlog, lanes)
        answering = Answering(self._feed, self._identity, lanes)
        self._loop = asyncio.get_running_loop()
        if self._ending.is_set():
            delivery.end()
        keeping = asyncio.create_task(self._keep_connected(delivery, answering))
        try:
            await delivery.ending.wait()
            await asyncio.wait([keeping], timeout=GRACE_S)
        finally:
            keeping.cancel()
            ended = (await asyncio.gather(keeping, return_exceptions=True))[0]
            lanes.close()
            await asyncio.to_thread(lanes.join, JOIN_S)
        if isinstance(ended, Exception):
            raise ended

    async def _keep_connected(self, delivery: Delivery, answering: Answering) -> None:
        while True:
            for server in self._settings.servers:
                await self._use(server, delivery, answering)
                if delivery.ending.is_set():
                    return
            delay = RECONNECT_S[min(self._failures, len(RECONNECT_S) - 1)]
            self._failures += 1
            await delivery.rest(delay)

    async def _use(self, server: str, delivery: Delivery, answering: Answering) -> None:
        """Deliver by way of this server, as long as that is possible."""
        try:
            link = await connect(server, self._settings, f"rekindle {self._identity.pid}")
        except (LinkError, GatewayError) as error:
            self._health.unwell(f"{shown(server)}: {error}")
            return
        try:
            self._health.server = shown(server)
            if self._settings.commands.enabled:
                await answering.listen(link, self._settings.commands.subject)
            await delivery.run(link, self._well, lambda why: self._health.unwell(f"{shown(server)}: {why}"))
        except LinkError as error:
            self._health.unwell(f"{shown(server)}: {error}")
        finally:
            await link.close()

    def _well(self) -> None:
        self._failures = 0
        self._health.well()


def _origin(feed: Feed) -> str:
    """A name for this log of events; made once, and remembered with it."""
    notes = feed.notes()
    known = notes.get(ORIGIN)
    if known is not None:
        return known
    made = secrets.token_hex(6)
    notes.set(ORIGIN, made)
    return made


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
