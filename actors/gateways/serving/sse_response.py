"""The event stream of one client.

It sends `connected`, a `snapshot` if the topics have states, the events of the log after the last
one that the client has, and then every new event. If the client's last event is no longer persisted,
it sends a `reset` and a snapshot before the events that are.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ...errors import StoreError
from ...facts.records import EventPage
from ...messages.topics import ALL_EVENTS, ALL_STATES, Topics
from .call_pools import CallPool, CallPools, CallTimeoutError, PoolFullError
from .event_frames import StreamFrame, log_frame, plain_frame, snapshot_frame
from .event_hub import KEEPALIVE_S, EventHub, Follower

PAGE = 500
RETRY_MS = 1000
"""How long a browser waits before it reconnects."""

_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
_EVERY_STATE = Topics(ALL_STATES)


@dataclass(frozen=True, slots=True)
class StreamRequest:
    """Which topics a client wants, and from where."""

    topics: tuple[str, ...] = (ALL_EVENTS,)
    after: int | None = None
    """The last event that it has; None: it wants only new events."""

    @property
    def wants_events(self) -> bool:
        """Whether any of its topics selects events of the log."""
        return any(pattern == "*" or pattern.startswith("event:") for pattern in self.topics)

    @property
    def wants_states(self) -> bool:
        """Whether any of its topics selects states; they are sent first, even if there are none now."""
        return any(not pattern.startswith("event:") for pattern in self.topics)


class EventStreamResponse(Response):
    """A response that ends when the client disconnects or the server stops."""

    def __init__(
        self, request: StreamRequest, follower: Follower, hub: EventHub, read: Callable[[int], Any]
    ) -> None:
        self._request = request
        self._follower = follower
        self._hub = hub
        self._read = read
        self.background = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the stream ends."""
        leaving = asyncio.ensure_future(_end_on_disconnect(receive, self._follower))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            async for body in self._pieces():
                if body:
                    await send({"type": "http.response.body", "body": body, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._hub.leave(self._follower)
            leaving.cancel()

    async def _pieces(self) -> AsyncIterator[bytes]:
        await self._hub.is_ready()
        # No await until the snapshot is taken: it has everything that was queued since the client joined, and
        # everything later is in its queue.
        self._follower.clear()
        last_id, recent = self._hub.last_id, self._hub.recent()
        states = self._hub.envelopes(self._follower.topics)
        yield _connected(self._request, last_id)
        if self._request.wants_states:
            yield snapshot_frame(last_id, states)
        if self._request.after is not None and self._request.wants_events:
            async for body in self._missed(self._request.after, last_id, recent):
                yield body
        while body := await self._follower.take():
            yield body

    async def _missed(
        self, after: int, last_id: int, recent: tuple[StreamFrame, ...]
    ) -> AsyncIterator[bytes]:
        """The events after the client's last one, up to the moment when it joined."""
        if after > last_id:
            yield self._reset(
                after, last_id, "no such event; the supervisor's history may have been replaced"
            )
            return
        at_hand = recent[0].id if recent else last_id + 1
        while after + 1 < at_hand:
            try:
                page: EventPage = await self._read(after)
            except (StoreError, PoolFullError, CallTimeoutError) as error:
                yield self._reset(after, last_id, f"older events cannot be read now: {error}")
                break
            if page.oldest > after + 1:
                yield self._reset(after, last_id, f"events before {page.oldest} are no longer persisted")
            frames = [log_frame(record) for record in page.events if record.id < at_hand]
            yield self._matching(frames)
            if len(frames) < PAGE:
                break
            after = frames[-1].id
        yield self._matching([frame for frame in recent if frame.id > after])

    def _matching(self, frames: list[StreamFrame]) -> bytes:
        choose = self._follower.topics.choose
        return b"".join(frame.body for frame in frames if choose(frame.topic))

    def _reset(self, after: int, last_id: int, reason: str) -> bytes:
        frame = plain_frame("reset", {"after": after, "last_id": last_id, "reason": reason})
        return frame + snapshot_frame(last_id, self._hub.envelopes(_EVERY_STATE))


async def _end_on_disconnect(receive: Receive, follower: Follower) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    follower.end()


def _connected(request: StreamRequest, last_id: int) -> bytes:
    data = {"last_id": last_id, "topics": request.topics, "keepalive_ms": round(KEEPALIVE_S * 1000)}
    return b"retry: %d\n" % RETRY_MS + plain_frame("connected", data)


def page_reader(read: Callable[[int, int], EventPage], pools: CallPools) -> Callable[[int], Any]:
    """Reads pages of the log in the store's pool, so that a slow store delays no other request."""

    def page(after: int) -> Any:
        return pools.run(CallPool.STORE, lambda: read(after, PAGE))

    return page
