"""One connection: who is at its other end, and how long it may take.

uvicorn's h11 protocol, with a peer that the kernel vouches for, and a deadline in every phase:
reading a request, answering it, waiting for the next. A client that sends nothing, sends drop
by drop, or never reads its answer is cut.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from .call_pools import Lane
from .json_values import Problem, encode

MOST_CONNECTIONS = 128
"""Half of them may follow events, so that there is always room for other requests."""
REQUEST_S = 5.0
"""How long a client may take to send a request, and how long it may keep silent after an answer."""
ANSWER_S = max(lane.patience_s for lane in Lane) + 10.0
"""How long an answer may take, with a client that reads it slowly."""

# uvicorn's own loggers would reach stderr in a host that has set up none.
_log = logging.getLogger("rekindle.control")
_log.addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class Peer:
    """The process at the other end, as the kernel says."""

    uid: int
    pid: int


class ControlProtocol(H11Protocol):
    """One connection of the control socket."""

    most_connections = MOST_CONNECTIONS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.logger = _log
        self.access_log = False
        self.since = 0.0
        self._admitted = False
        self._streams = False
        """What is being sent has no end; only a client that does not take it is cut."""
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Let in those who may, while there is room."""
        self.transport = transport
        if not self._may_enter(transport):
            return
        if not self._make_room():
            self._turn_away(503, "busy", f"{self.most_connections} requests are under way")
            return
        self._admitted = True
        self.app_state = {**self.app_state, "connection": self}
        self.since = self.loop.time()
        super().connection_made(transport)
        self._allow(REQUEST_S)

    def data_received(self, data: bytes) -> None:
        """Read on; once a request is whole, its answer may take its time."""
        if not self._admitted:
            return
        super().data_received(data)
        if self.conn.their_state in (h11.DONE, h11.MUST_CLOSE) and self.conn.our_state is not h11.DONE:
            self._allow_an_answer()

    def on_response_complete(self) -> None:
        """Wait for the next request, not for long; nor for the client to take this answer."""
        self.since = self.loop.time()
        self._streams = False
        self._allow(REQUEST_S)
        super().on_response_complete()
        if not self.idle:  # the next one was there already
            self._allow_an_answer()

    def pause_writing(self) -> None:
        """The client does not take what we send: not for long."""
        super().pause_writing()
        self._allow(REQUEST_S)

    def resume_writing(self) -> None:
        """It takes it again."""
        super().resume_writing()
        self._allow(REQUEST_S) if self.idle else self._allow_an_answer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is there any more."""
        if self._deadline is not None:
            self._deadline.cancel()
        if self._admitted:
            super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP, as far as that can be answered."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(_answer(400, "malformed", msg))
        self.transport.close()

    @property
    def idle(self) -> bool:
        """Whether no request is under way."""
        return self.cycle is None or self.cycle.response_complete

    def cut(self) -> None:
        """End the connection at once, whatever is under way."""
        self.transport.abort()

    def _may_enter(self, transport: asyncio.Transport) -> bool:
        """Whether whoever is there may ask anything; if not, it was told so."""
        peer = peer_of(transport.get_extra_info("socket"))
        if peer is None or not may_connect(peer.uid):
            self._turn_away(403, "forbidden", "this socket belongs to another user")
            return False
        self.app_state = {**self.app_state, "peer": peer}
        return True

    def _make_room(self) -> bool:
        if len(self.connections) < self.most_connections:
            return True
        idle = [each for each in mine(self.connections) if each.idle]
        if not idle:
            return False
        oldest = min(idle, key=lambda each: each.since)
        self.connections.discard(oldest)
        oldest.cut()
        return True

    def _turn_away(self, status: int, error: str, message: str) -> None:
        _log.warning("a connection was turned away: %s", message)
        self.transport.write(_answer(status, error, message))
        self.transport.close()
        self._allow(REQUEST_S)

    def stream(self) -> None:
        """Let this answer take for ever, as long as the client reads it."""
        self._streams = True
        self._allow_an_answer()

    def _allow_an_answer(self) -> None:
        if self.flow.write_paused:
            return
        if not self._streams:
            self._allow(ANSWER_S)
        elif self._deadline is not None:
            self._deadline.cancel()

    def _allow(self, seconds: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(seconds, self.cut)


def mine(connections: Iterable[object]) -> list[ControlProtocol]:
    """Those that are ours."""
    return [each for each in connections if isinstance(each, ControlProtocol)]


def peer_of(connection: Any) -> Peer | None:
    """Who is at the other end; None if the kernel cannot say."""
    size = struct.calcsize("iII")
    try:
        pid, uid, _ = struct.unpack("iII", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    except (OSError, AttributeError):
        return None
    return Peer(uid=uid, pid=pid)


def may_connect(uid: int) -> bool:
    """Whether this user may give orders."""
    return uid in (0, os.geteuid())


def _answer(status: int, error: str, message: str) -> bytes:
    body = encode(Problem(error, message))
    head = f"HTTP/1.1 {status} Refused\r\ncontent-type: application/json\r\nconnection: close\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode("ascii") + body
