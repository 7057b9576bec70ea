"""The hub: receives every event once, encodes it once, and queues it for every client of one server.

Belongs to the server's event loop; other threads call only `tell`. It subscribes when the first
client joins and unsubscribes with the last one, so that a server without streams costs nothing.
A client that does not keep up is disconnected when its queue is full; it resumes after the number
of the last event that it has.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from ...facts.topic_states import JobTopicState, State
from ...messages import Published, Snapshot, StateChanged
from ...messages.topics import ALL_EVENTS, ALL_STATES, Topics
from ..operator import Operator
from .event_frames import KEEPALIVE, StreamFrame, envelope, published_frame, state_frame

MOST_CLIENTS = 64
MOST_FRAMES = 20_000
MOST_BYTES = 16 * 1024 * 1024
"""All clients share the frames, so the queue can hold a thousand deaths at once for a client that reads."""
LARGEST_PIECE = 256 * 1024
RECENT = 256
KEEPALIVE_S = 3.0
TICK_S = 0.5


class StreamsFullError(Exception):
    """The maximum number of event streams is reached."""


class Follower:
    """One client: its topics, and its queue."""

    def __init__(self, topics: Topics, cut: Callable[[], None]) -> None:
        self.topics = topics
        self.cut = cut
        self.ended = False
        self.sent_at = 0.0
        """When something was last queued for it."""
        self._frames: deque[bytes] = deque()
        self._bytes = 0
        self._waiter: asyncio.Future[None] | None = None

    def push(self, body: bytes) -> bool:
        """Queue a piece; returns whether there was room."""
        if len(self._frames) >= MOST_FRAMES or self._bytes > MOST_BYTES:
            return False
        self._frames.append(body)
        self._bytes += len(body)
        self._wake()
        return True

    def clear(self) -> None:
        """Forget what is queued: the client is sent the current states and the latest events instead."""
        self._frames.clear()
        self._bytes = 0

    def end(self) -> None:
        """End the stream after what is queued."""
        self.ended = True
        self._wake()

    async def take(self) -> bytes:
        """Wait for the next piece; empty at the end."""
        while not self._frames and not self.ended:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        taken, size = [], 0
        while self._frames and size < LARGEST_PIECE:
            taken.append(self._frames.popleft())
            size += len(taken[-1])
        self._bytes -= size
        return b"".join(taken)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class EventHub:
    """All events and states, for the clients of one server."""

    def __init__(self, operator: Operator, most_clients: int = MOST_CLIENTS) -> None:
        self._operator = operator
        self._most_clients = most_clients
        self._loop: asyncio.AbstractEventLoop | None = None
        self._inbox: deque[object] = deque()
        self._is_woken = False
        self._followers: set[Follower] = set()
        self._snapshot: asyncio.Event = asyncio.Event()
        self._envelopes: dict[tuple[str, int | None], bytes] = {}
        """The current states, by topic; the jobs that are being executed share one topic."""
        self._recent: deque[StreamFrame] = deque(maxlen=RECENT)
        self._tick: asyncio.TimerHandle | None = None
        self._closed = False
        self.last_id = 0

    # ── from the actors ──────────────────────────────────────────────────────────────────

    def tell(self, message: object) -> None:
        """Receive a message, on any thread; many at once cost the loop one wake-up."""
        self._inbox.append(message)
        if not self._is_woken and self._loop is not None:
            self._is_woken = True
            self._loop.call_soon_threadsafe(self._receive)

    def _receive(self) -> None:
        self._is_woken = False
        while self._inbox:
            match self._inbox.popleft():
                case Snapshot() as snapshot:
                    self._begin(snapshot)
                case Published() as published if self._snapshot.is_set():
                    frame = published_frame(published)
                    self.last_id = published.id
                    self._recent.append(frame)
                    self._send(frame)
                case StateChanged() as changed if self._snapshot.is_set():
                    self._send(self._recorded(changed))
                case _:
                    pass  # from an earlier subscription

    def _begin(self, snapshot: Snapshot) -> None:
        self.last_id = snapshot.last_id
        self._recent = deque((published_frame(each) for each in snapshot.recent), maxlen=RECENT)
        self._envelopes = {_key(each): envelope(each) for each in snapshot.states}
        self._snapshot.set()

    def _recorded(self, changed: StateChanged) -> StreamFrame:
        enveloped = envelope(changed)
        if changed.state is None or _is_over(changed.state):
            self._envelopes.pop(_key(changed), None)
        else:
            self._envelopes[_key(changed)] = enveloped
        return state_frame(changed, enveloped)

    def _send(self, frame: StreamFrame) -> None:
        now = asyncio.get_running_loop().time()
        for follower in tuple(self._followers):
            if follower.topics.choose(frame.topic):
                follower.sent_at = now
                self._push(follower, frame.body)

    def _push(self, follower: Follower, body: bytes) -> None:
        if not follower.push(body):
            self.leave(follower)
            follower.end()
            follower.cut()

    # ── for the clients ──────────────────────────────────────────────────────────────────

    async def join(self, topics: Topics, cut: Callable[[], None]) -> Follower:
        """Add a client that is sent what its topics match, from now on.

        Raises:
            StreamsFullError: there are too many clients, or the server is stopping.
        """
        if self._closed or len(self._followers) >= self._most_clients:
            raise StreamsFullError
        follower = Follower(topics, cut)
        self._loop = asyncio.get_running_loop()
        follower.sent_at = self._loop.time()
        self._followers.add(follower)
        if len(self._followers) == 1:
            self._operator.subscribe(self, ALL_EVENTS, *ALL_STATES)
            self._tick = self._loop.call_later(TICK_S, self._keep_alive)
        return follower

    async def is_ready(self) -> None:
        """Wait for the first snapshot."""
        await self._snapshot.wait()

    def leave(self, follower: Follower) -> None:
        """Remove a client; the last one ends the subscription."""
        if follower not in self._followers:
            return
        self._followers.discard(follower)
        if not self._followers:
            self._operator.unsubscribe(self)
            self._snapshot.clear()
            if self._tick is not None:
                self._tick.cancel()

    def recent(self) -> tuple[StreamFrame, ...]:
        """The latest events, oldest first."""
        return tuple(self._recent)

    def envelopes(self, topics: Topics) -> list[bytes]:
        """The states of these topics."""
        return [body for (topic, _), body in self._envelopes.items() if topics.choose(topic)]

    def close(self) -> None:
        """End every stream, and accept no more."""
        self._closed = True
        for follower in tuple(self._followers):
            self.leave(follower)
            follower.end()

    def _keep_alive(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for follower in tuple(self._followers):
            if now - follower.sent_at >= KEEPALIVE_S:
                follower.sent_at = now
                self._push(follower, KEEPALIVE)
        if self._followers:
            self._tick = loop.call_later(TICK_S, self._keep_alive)


def _key(changed: StateChanged) -> tuple[str, int | None]:
    return changed.topic, changed.state.id if isinstance(changed.state, JobTopicState) else None


def _is_over(state: State) -> bool:
    return isinstance(state, JobTopicState) and state.status != "running"
