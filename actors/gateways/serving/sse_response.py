"""One client that follows the events: what it is sent first, then everything as it happens.

`connected`, then for topics with a state a `snapshot`, then the events of the log after the last
one that the client has, then whatever comes. A client whose last event is not kept any more is
told so by a `reset`, and gets a snapshot before what is still there.
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
from .call_pools import Lane, LaneFullError, Lanes, LaneSlowError
from .event_frames import Frame, log_frame, plain_frame, snapshot_frame
from .event_hub import KEEPALIVE_S, Follower, Hub

PAGE = 500
RETRY_MS = 1000
"""How long a browser waits before it comes back."""

_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
_EVERY_STATE = Topics(ALL_STATES)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a client asked for."""

    topics: tuple[str, ...] = (ALL_EVENTS,)
    after: int | None = None
    """The last event that it has; None: it wants only what comes."""

    @property
    def wants_the_log(self) -> bool:
        """Whether any of its topics is one of the log's."""
        return any(pattern == "*" or pattern.startswith("event:") for pattern in self.topics)


class EventStreamResponse(Response):
    """An answer that ends when the client goes, or we do."""

    def __init__(self, wish: Wish, follower: Follower, hub: Hub, read: Callable[[int], Any]) -> None:
        self._wish = wish
        self._follower = follower
        self._hub = hub
        self._read = read
        self.background = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until it is over."""
        leaving = asyncio.ensure_future(_gone(receive, self._follower))
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
        # One moment: what follows from here on waits in the client's queue.
        last_id, recent = self._hub.last_id, self._hub.recent()
        states = self._hub.envelopes(self._follower.topics)
        yield _connected(self._wish, last_id)
        if states:
            yield snapshot_frame(last_id, states)
        if self._wish.after is not None and self._wish.wants_the_log:
            async for body in self._past(self._wish.after, last_id, recent):
                yield body
        while body := await self._follower.take():
            yield body

    async def _past(self, after: int, last_id: int, recent: tuple[Frame, ...]) -> AsyncIterator[bytes]:
        """What happened after the client's last event, up to the moment when it came."""
        if after > last_id:
            yield self._reset(after, last_id, "there is no such event yet; another history, perhaps")
            return
        at_hand = recent[0].id if recent else last_id + 1
        while after + 1 < at_hand:
            try:
                page: EventPage = await self._read(after)
            except (StoreError, LaneFullError, LaneSlowError) as error:
                yield self._reset(after, last_id, f"older events cannot be read at the moment: {error}")
                break
            if page.oldest > after + 1:
                yield self._reset(after, last_id, f"events before {page.oldest} are not kept any more")
            frames = [log_frame(record) for record in page.events if record.id < at_hand]
            yield self._chosen(frames)
            if len(frames) < PAGE:
                break
            after = frames[-1].id
        yield self._chosen([frame for frame in recent if frame.id > after])

    def _chosen(self, frames: list[Frame]) -> bytes:
        choose = self._follower.topics.choose
        return b"".join(frame.body for frame in frames if choose(frame.topic))

    def _reset(self, after: int, last_id: int, reason: str) -> bytes:
        told = plain_frame("reset", {"after": after, "last_id": last_id, "reason": reason})
        return told + snapshot_frame(last_id, self._hub.envelopes(_EVERY_STATE))


async def _gone(receive: Receive, follower: Follower) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    follower.end()


def _connected(wish: Wish, last_id: int) -> bytes:
    data = {"last_id": last_id, "topics": wish.topics, "keepalive_ms": round(KEEPALIVE_S * 1000)}
    return b"retry: %d\n" % RETRY_MS + plain_frame("connected", data)


def reader(read: Callable[[int, int], EventPage], lanes: Lanes) -> Callable[[int], Any]:
    """Reads pages of the log, where a slow store holds nobody up."""

    def page(after: int) -> Any:
        return lanes.run(Lane.STORE, lambda: read(after, PAGE))

    return page
