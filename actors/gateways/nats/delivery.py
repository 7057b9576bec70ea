"""Delivers the backlog over one connection after the other.

Core NATS forgets what nobody hears: events are published, confirmed by the server, and dropped,
counted, if they wait for too long a time. With JetStream every event is stored, in order, one
after the other; what was stored is remembered, so that the next connection, or the next run,
goes on behind it. The stream drops what it has already by `Nats-Msg-Id`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from ...errors import RekindleError, StoreError
from ...facts.records import EventRecord
from ..serving.call_pools import Lane, LaneFullError, Lanes, LanesClosedError, LaneSlowError
from ..settings.nats_settings import NatsSettings
from .backlog import Backlog
from .event_feed import Feed
from .nats_link import Link, OversizedError, RefusedError
from .nats_message import Message, Shaping

BATCH = 64
HEARTBEAT_S = 2.0
"""How often a connection is tried that has nothing to carry."""
REMEMBER_S = 1.0
"""How often the last event that was stored is remembered; a repeat is recognised by its id."""
RETRY_S = (0.5, 1.0, 2.0, 5.0)
POSITION = "nats_delivered"
"""The setting that holds the last event that a stream has."""


class Delivery:
    """What is delivered, and how far it got. Belongs to the gateway's event loop."""

    def __init__(
        self, feed: Feed, settings: NatsSettings, shaping: Shaping, backlog: Backlog, lanes: Lanes
    ) -> None:
        self.delivered = 0
        self.given_up = 0
        """Events that no server ever takes, or that the store did not keep long enough."""
        self._feed = feed
        self._settings = settings
        self._shaping = shaping
        self._backlog = backlog
        self._lanes = lanes
        self._wake = asyncio.Event()
        self.ending = asyncio.Event()
        self._remembered = backlog.delivered
        self._remembered_at = 0.0

    def look(self) -> None:
        """There is something new in the backlog."""
        self._wake.set()

    def end(self) -> None:
        """Deliver what is there, and no more."""
        self.ending.set()
        self._wake.set()

    async def rest(self, seconds: float) -> None:
        """Wait so long; the end comes at once."""
        await _either(self.ending, seconds)

    async def run(self, link: Link, well: Callable[[], None], unwell: Callable[[str], None]) -> None:
        """Deliver over this connection, until it breaks or, at the end, nothing is left.

        Args:
            link: the connection.
            well: told whenever the server has taken something.
            unwell: told why the server takes nothing, though it is there.

        Raises:
            LinkError: the connection broke.
        """
        if self._settings.jetstream:
            await self._into_streams(link, well, unwell)
        else:
            await self._to_listeners(link, well)

    @property
    def _is_done(self) -> bool:
        return self.ending.is_set() and not self._backlog.waiting

    # ── core ─────────────────────────────────────────────────────────────────────────────

    async def _to_listeners(self, link: Link, well: Callable[[], None]) -> None:
        await self._show_all(link)
        while True:
            self._wake.clear()
            records = self._backlog.next(BATCH)
            if records is None:
                self._backlog.skip_what_was_dropped()
                continue
            taken = [await _published(link, self._shaping.message(record)) for record in records]
            await link.confirm()
            well()
            if records:
                # Counted only now: what was not confirmed is published again.
                self.delivered += sum(taken)
                self.given_up += len(taken) - sum(taken)
                self._backlog.settle(records[-1].id)
            elif self._is_done:
                return
            else:
                await _either(self._wake, HEARTBEAT_S)

    async def _show_all(self, link: Link) -> None:
        """Publish how every worker is: whoever listens may have missed what led to it."""
        try:
            report = await self._lanes.run(Lane.SIGHT, self._feed.report)
        except (RekindleError, LaneSlowError, LaneFullError, LanesClosedError):
            return  # the changes from now on are told all the same
        for message in self._shaping.snapshots(report.workers):
            with suppress(OversizedError):
                await link.publish(message)

    # ── JetStream ────────────────────────────────────────────────────────────────────────

    async def _into_streams(
        self, link: Link, well: Callable[[], None], unwell: Callable[[str], None]
    ) -> None:
        failures, ready = 0, False
        while not self._is_done:
            self._wake.clear()
            try:
                if not ready:
                    await link.ensure_stream(self._shaping.patterns)
                    ready = True
                stored = await self._store_some(link)
            except (RefusedError, StoreError, LaneSlowError, LaneFullError) as error:
                ready = False
                unwell(str(error) or "events that were not delivered cannot be read back")
                if await _either(self.ending, RETRY_S[min(failures, len(RETRY_S) - 1)]):
                    break
                failures += 1
                continue
            failures = 0
            if not stored:
                await link.confirm()
            well()
            if not stored:
                await _either(self._wake, self._until_noted())
                self._note_position()
        self._note_position(now=True)

    async def _store_some(self, link: Link) -> int:
        records = self._backlog.next(BATCH)
        if records is None:
            records = await self._read_back()
        for record in records:
            try:
                await link.store(self._shaping.message(record))
            except OversizedError:
                self.given_up += 1
            else:
                self.delivered += 1
            self._backlog.settle(record.id)
            self._note_position()
        return len(records)

    async def _read_back(self) -> Sequence[EventRecord]:
        """The next events, from the store; none if they are on their way there."""
        after = self._backlog.delivered
        page = await self._lanes.run(Lane.STORE, lambda: self._feed.event_log(after, BATCH))
        if page.events and page.events[0].id > after + 1:
            self.given_up += page.events[0].id - after - 1
            self._backlog.settle(page.events[0].id - 1)  # counted once, however often they are read
        return page.events

    def _until_noted(self) -> float:
        return HEARTBEAT_S if self._backlog.delivered == self._remembered else REMEMBER_S

    def _note_position(self, *, now: bool = False) -> None:
        at, position = asyncio.get_running_loop().time(), self._backlog.delivered
        if position != self._remembered and (now or at - self._remembered_at >= REMEMBER_S):
            self._remembered, self._remembered_at = position, at
            self._feed.notes().set(POSITION, str(position))


async def _published(link: Link, message: Message) -> bool:
    """Whether the server could be sent the message at all."""
    try:
        await link.publish(message)
    except OversizedError:
        return False
    return True


async def _either(event: asyncio.Event, seconds: float) -> bool:
    """Wait for the event, no longer than this; whether it came."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
