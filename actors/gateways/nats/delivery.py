"""Delivers the backlog over one connection after the other.

Core NATS does not store messages: events are published and confirmed by the server, and dropped and
counted when the backlog is full. With JetStream every event is stored in order; the number of the last
one is persisted, so that the next connection, or the next run, continues after it. The stream
recognises repeats by their `Nats-Msg-Id`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from ...errors import RekindleError, StoreError
from ...facts.records import EventRecord
from ..event_source import EventSource
from ..serving.call_pools import CallPool, CallPools, CallTimeoutError, PoolFullError, PoolsClosedError
from ..settings.nats_settings import NatsSettings
from .backlog import Backlog
from .nats_link import Link, OversizedError, StreamRefusedError
from .nats_message import Message, MessageBuilder

BATCH = 64
HEARTBEAT_S = 2.0
"""How often an idle connection is checked."""
SAVE_S = 1.0
"""How often the position is persisted; the stream recognises repeats by their id."""
RETRY_S = (0.5, 1.0, 2.0, 5.0)
POSITION = "nats_delivered"
"""The stored value with the number of the last event in the stream."""


class Delivery:
    """Delivers the backlog and tracks the position. Belongs to the gateway's event loop."""

    def __init__(
        self,
        source: EventSource,
        settings: NatsSettings,
        messages: MessageBuilder,
        backlog: Backlog,
        pools: CallPools,
    ) -> None:
        self.delivered = 0
        self.dropped = 0
        """Events that are too large for a server, or that the store deleted before they were delivered."""
        self._source = source
        self._settings = settings
        self._messages = messages
        self._backlog = backlog
        self._pools = pools
        self._wake = asyncio.Event()
        self.ending = asyncio.Event()
        self._saved = backlog.delivered
        self._saved_at = 0.0

    def wake(self) -> None:
        """The backlog has a new event."""
        self._wake.set()

    def end(self) -> None:
        """Deliver what is in the backlog, then end."""
        self.ending.set()
        self._wake.set()

    async def rest(self, seconds: float) -> None:
        """Wait; returns at once when the gateway ends."""
        await _wait(self.ending, seconds)

    async def run(self, link: Link, succeeded: Callable[[], None], failed: Callable[[str], None]) -> None:
        """Deliver over this connection until it breaks or, at the end, the backlog is empty.

        Args:
            link: the connection.
            succeeded: called whenever the server has accepted something.
            failed: called with the reason when the server is connected but does not accept events.

        Raises:
            LinkError: the connection broke.
        """
        if self._settings.jetstream:
            await self._store_all(link, succeeded, failed)
        else:
            await self._publish_all(link, succeeded)

    @property
    def _is_done(self) -> bool:
        return self.ending.is_set() and not self._backlog.waiting

    # ── core ─────────────────────────────────────────────────────────────────────────────

    async def _publish_all(self, link: Link, succeeded: Callable[[], None]) -> None:
        await self._publish_snapshots(link)
        while True:
            self._wake.clear()
            records = self._backlog.next(BATCH)
            if records is None:
                self._backlog.skip_dropped()
                continue
            taken = [await _published(link, self._messages.message(record)) for record in records]
            await link.confirm()
            succeeded()
            if records:
                # Counted only now: unconfirmed events are published again.
                self.delivered += sum(taken)
                self.dropped += len(taken) - sum(taken)
                self._backlog.settle(records[-1].id)
            elif self._is_done:
                return
            else:
                await _wait(self._wake, HEARTBEAT_S)

    async def _publish_snapshots(self, link: Link) -> None:
        """Publish the state of every worker: subscribers may have missed the events that led to it."""
        try:
            report = await self._pools.run(CallPool.QUERY, self._source.report)
        except (RekindleError, CallTimeoutError, PoolFullError, PoolsClosedError):
            return  # the changes from now on are published anyway
        for message in self._messages.snapshots(report.workers):
            with suppress(OversizedError):
                await link.publish(message)

    # ── JetStream ────────────────────────────────────────────────────────────────────────

    async def _store_all(
        self, link: Link, succeeded: Callable[[], None], failed: Callable[[str], None]
    ) -> None:
        failures, ready = 0, False
        while not self._is_done:
            self._wake.clear()
            try:
                if not ready:
                    await link.ensure_stream(self._messages.patterns)
                    ready = True
                stored = await self._store_some(link)
            except (StreamRefusedError, StoreError, CallTimeoutError, PoolFullError) as error:
                ready = False
                failed(str(error) or "undelivered events cannot be read from the store")
                if await _wait(self.ending, RETRY_S[min(failures, len(RETRY_S) - 1)]):
                    break
                failures += 1
                continue
            failures = 0
            if not stored:
                await link.confirm()
            succeeded()
            if not stored:
                await _wait(self._wake, self._until_next_save())
                self._save_position()
        self._save_position(now=True)

    async def _store_some(self, link: Link) -> int:
        records = self._backlog.next(BATCH)
        if records is None:
            records = await self._read_back()
        for record in records:
            try:
                await link.store(self._messages.message(record))
            except OversizedError:
                self.dropped += 1
            else:
                self.delivered += 1
            self._backlog.settle(record.id)
            self._save_position()
        return len(records)

    async def _read_back(self) -> Sequence[EventRecord]:
        """The next events, from the store; none if they are not persisted yet."""
        after = self._backlog.delivered
        page = await self._pools.run(CallPool.STORE, lambda: self._source.event_log(after, BATCH))
        if page.events and page.events[0].id > after + 1:
            self.dropped += page.events[0].id - after - 1
            self._backlog.settle(page.events[0].id - 1)  # count them once, even if the page is read again
        return page.events

    def _until_next_save(self) -> float:
        return HEARTBEAT_S if self._backlog.delivered == self._saved else SAVE_S

    def _save_position(self, *, now: bool = False) -> None:
        at, position = asyncio.get_running_loop().time(), self._backlog.delivered
        if position != self._saved and (now or at - self._saved_at >= SAVE_S):
            self._saved, self._saved_at = position, at
            self._source.notes().set(POSITION, str(position))


async def _published(link: Link, message: Message) -> bool:
    """Publish a message; returns False if it is too large."""
    try:
        await link.publish(message)
    except OversizedError:
        return False
    return True


async def _wait(event: asyncio.Event, seconds: float) -> bool:
    """Wait for the event, at most this long; returns whether it occurred."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
