"""The NATS gateway: publishes every event to a NATS server, and accepts commands if that is enabled.

It runs on a thread of its own, and the supervisor never waits for it: a server that is down, slow,
frozen or full costs nothing but the events that core NATS drops meanwhile, which are counted. The
gateway reports once that delivery failed, and once that it works again.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from loguru import logger

from ...errors import RekindleError
from ...messages import Published, Snapshot
from ...messages.topics import ALL_EVENTS
from ..delivery_state import DeliveryState, stored_origin
from ..event_source import EventSource
from ..gateway_errors import GatewayError
from ..gateway_state import GatewayState
from ..server_identity import Identity
from ..serving.call_pools import CallPools
from ..settings.nats_settings import NatsSettings
from .backlog import Backlog
from .connection_options import check, connect, shown
from .delivery import POSITION, Delivery
from .nats_commands import CommandListener
from .nats_link import LinkError
from .nats_message import MessageBuilder

NAME = "nats"
START_S = 10.0
GRACE_S = 1.0
"""How long the delivery of the remaining events may take once the gateway stops."""
JOIN_S = 0.2
STOP_S = 5.0
RECONNECT_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""The delays before the next attempts; the last one repeats."""
ORIGIN = "nats_origin"
"""The stored value that distinguishes this event log from every other one."""


class NatsGateway:
    """One connection to NATS, renewed when it breaks. A context manager, or call `start` and `stop`."""

    def __init__(self, source: EventSource, settings: NatsSettings, identity: Identity) -> None:
        """Describe a gateway; nothing runs yet.

        Raises:
            MissingExtraError: nats-py is not installed.
            GatewayError: a file that the settings name is missing or unsafe.
        """
        check(settings)
        self._source = source
        self._settings = settings
        self._identity = identity
        self._process = os.getpid()
        self._life = threading.Lock()
        self._placed = threading.Event()
        self._backlog: Backlog | None = None
        self._core: _GatewayThread | None = None
        self._thread: threading.Thread | None = None
        self._state = DeliveryState(
            source, NAME, goods="events", meanwhile="wait", problem="not connected yet"
        )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Deliver every event from now on, even if no server is reachable yet.

        Raises:
            GatewayError: the gateway cannot start.
        """
        with self._life:
            if self._thread is not None:
                return
            # First: events from here on are in the backlog, whenever the thread starts.
            self._source.subscribe(self, ALL_EVENTS)
            if not self._placed.wait(START_S) or self._backlog is None:
                self._source.unsubscribe(self)
                raise GatewayError("the NATS gateway received no snapshot from the event broker")
            self._core = _GatewayThread(
                self._source, self._settings, self._identity, self._backlog, self._state
            )
            self._thread = threading.Thread(target=self._core.run, name="rekindle-nats", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Deliver the backlog within `GRACE_S`, then end. A second call does nothing, nor one in a fork."""
        if os.getpid() != self._process:
            return
        with self._life:
            if self._thread is None or self._core is None:
                return
            self._receive_the_rest()
            self._source.unsubscribe(self)
            self._core.end()
            self._thread.join(STOP_S)
            if self._thread.is_alive():
                logger.error("nats: gateway did not stop within {} s", STOP_S)
            self._thread = None

    def _receive_the_rest(self) -> None:
        """Wait for the events that the Broker already has: its next snapshot comes after them."""
        self._placed.clear()
        try:
            self._source.subscribe(self, ALL_EVENTS)
        except RekindleError:
            return  # the system has ended and publishes nothing
        self._placed.wait(GRACE_S)

    def tell(self, message: object) -> None:
        """Receive an event; on the Broker's thread, which never waits here."""
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
                    self._core.wake()
            case _:
                pass

    def state(self) -> GatewayState:
        """The current state."""
        backlog, delivery = self._backlog, None if self._core is None else self._core.delivery
        dropped = 0 if backlog is None or self._settings.jetstream else backlog.dropped
        return GatewayState(
            name=NAME,
            connected=self._state.problem is None,
            detail=self._state.detail,
            since_wall_ms=self._state.since_wall_ms,
            delivered=0 if delivery is None else delivery.delivered,
            dropped=dropped + (0 if delivery is None else delivery.dropped),
            waiting=0 if backlog is None else backlog.waiting,
        )

    def _delivered(self, last_id: int) -> int:
        """The last event that needs no delivery; in the first run all earlier events."""
        if not self._settings.jetstream:
            return last_id
        notes = self._source.notes()
        saved = notes.get(POSITION)
        if saved is None or not saved.isdecimal():
            # At once: if the supervisor is killed before anything is stored, the next run also begins here.
            notes.set(POSITION, str(last_id))
            return last_id
        return min(int(saved), last_id)


class _GatewayThread:
    """What runs on the gateway's thread."""

    def __init__(
        self,
        source: EventSource,
        settings: NatsSettings,
        identity: Identity,
        backlog: Backlog,
        state: DeliveryState,
    ) -> None:
        self.delivery: Delivery | None = None
        self._source = source
        self._settings = settings
        self._identity = identity
        self._backlog = backlog
        self._state = state
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending = threading.Event()
        self._woken = False
        self._failures = 0

    # ── from other threads ───────────────────────────────────────────────────────────────

    def wake(self) -> None:
        """The backlog has a new event; a thread that has not started yet finds it there."""
        if not self._woken and self._loop is not None:
            self._woken = True
            self._call(self._wake)

    def end(self) -> None:
        """Deliver the backlog, and end."""
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
        """Run until the end."""
        try:
            asyncio.run(self._main())
        except BaseException as error:  # noqa: BLE001  # no error of the gateway may reach the host
            logger.opt(exception=error).error("nats: gateway ended")
            self._state.failed("the gateway has ended; the log has the details")

    def _wake(self) -> None:
        self._woken = False  # first: a later event must wake the loop again
        assert self.delivery is not None
        self.delivery.wake()

    def _end(self) -> None:
        assert self.delivery is not None
        self.delivery.end()

    async def _main(self) -> None:
        pools = CallPools()
        messages = MessageBuilder(self._settings, stored_origin(self._source, ORIGIN, size=6))
        self.delivery = delivery = Delivery(self._source, self._settings, messages, self._backlog, pools)
        listener = CommandListener(self._source, self._identity, pools, self._settings)
        self._loop = asyncio.get_running_loop()
        if self._ending.is_set():
            delivery.end()
        connecting = asyncio.create_task(self._keep_connected(delivery, listener))
        try:
            await delivery.ending.wait()
            await asyncio.wait([connecting], timeout=GRACE_S)
        finally:
            connecting.cancel()
            ended = (await asyncio.gather(connecting, return_exceptions=True))[0]
            pools.close()
            await asyncio.to_thread(pools.join, JOIN_S)
        if isinstance(ended, Exception):
            raise ended

    async def _keep_connected(self, delivery: Delivery, listener: CommandListener) -> None:
        while True:
            for server in self._settings.servers:
                await self._use(server, delivery, listener)
                if delivery.ending.is_set():
                    return
            delay = RECONNECT_S[min(self._failures, len(RECONNECT_S) - 1)]
            self._failures += 1
            await delivery.rest(delay)

    async def _use(self, server: str, delivery: Delivery, listener: CommandListener) -> None:
        """Deliver to this server, as long as that is possible."""
        try:
            link = await connect(server, self._settings, f"rekindle {self._identity.pid}")
        except (LinkError, GatewayError) as error:
            self._state.failed(f"{shown(server)}: {error}")
            return
        try:
            self._state.server = shown(server)
            if self._settings.commands.enabled:
                await listener.listen(link, self._settings.commands.subject)
            await delivery.run(
                link, self._succeeded, lambda why: self._state.failed(f"{shown(server)}: {why}")
            )
        except LinkError as error:
            self._state.failed(f"{shown(server)}: {error}")
        finally:
            await link.close()

    def _succeeded(self) -> None:
        self._failures = 0
        self._state.succeeded()
