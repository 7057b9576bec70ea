"""The sessions of agents over HTTP: a limited number; a new one replaces the one that was idle longest.

Many clients begin a session for each call and end none, and one faulty client can begin them without an end.
A limit alone would lock all others out until the idle time of these sessions is over.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

SESSION = b"mcp-session-id"
_VERSION = b"mcp-protocol-version"
_SERVER_ERROR = -32000
"""Of JSON-RPC: the first code that a server may define by itself."""


@dataclass(slots=True)
class _Session:
    used_at: float
    busy: int = 0
    """How many requests of it are being answered."""
    streams: int = 0
    """How many streams of it are open, which may be quiet for hours."""


class SessionRoom:
    """Passes requests on to an application, as long as there is room for their sessions."""

    def __init__(
        self,
        app: App,
        *,
        most: int,
        rest_s: float,
        idle_s: float,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin without a session.

        Args:
            app: the application, which gives each session its id and ends it on DELETE.
            most: how many sessions there may be.
            rest_s: a session that was not used for this time makes room for a new one.
            idle_s: after this time without a request the application ends a session by itself.
            now: the time in seconds.
        """
        self._app = app
        self._most = most
        self._rest_s = rest_s
        self._idle_s = idle_s
        self._now = now
        self._sessions: dict[str, _Session] = {}
        self._opening = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        session_id = _header(scope["headers"], SESSION)
        version = _header(scope["headers"], _VERSION)
        session = self._sessions.get(session_id)
        if session is not None:
            await self._continue(session_id, session, scope, receive, send)
        elif session_id or (version and version not in HANDSHAKE_PROTOCOL_VERSIONS):
            await self._app(scope, receive, send)  # of an unknown session, or of a protocol without any
        elif await self._make_room(scope):
            await self._open(scope, receive, send)
        else:
            await self._refuse(send)

    async def _continue(
        self, session_id: str, session: _Session, scope: Scope, receive: Receive, send: Send
    ) -> None:
        is_stream = scope["method"] == "GET"
        session.used_at = self._now()
        session.streams += is_stream
        session.busy += not is_stream

        async def noting(message: Message) -> None:
            ended = scope["method"] == "DELETE" and message.get("status") == 200
            if ended or message.get("status") == 404:
                self._sessions.pop(session_id, None)
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            session.used_at = self._now()
            session.streams -= is_stream
            session.busy -= not is_stream

    async def _open(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def noting(message: Message) -> None:
            is_begun = message["type"] == "http.response.start" and message["status"] < 400
            if is_begun and (given := _header(message.get("headers", ()), SESSION)):
                self._sessions[given] = _Session(self._now())
            await send(message)

        self._opening += 1
        try:
            await self._app(scope, receive, noting)
        finally:
            self._opening -= 1

    async def _make_room(self, scope: Scope) -> bool:
        """Whether there is room for one session more; it may end one that rests."""
        now = self._now()
        for id_, each in [*self._sessions.items()]:
            if not each.busy and not each.streams and now >= each.used_at + self._idle_s:
                del self._sessions[id_]
        if len(self._sessions) + self._opening < self._most:
            return True
        resting = [
            (each.streams > 0, each.used_at, id_)
            for id_, each in self._sessions.items()
            if not each.busy and now >= each.used_at + self._rest_s
        ]
        if not resting:
            return False
        *_, session_id = min(resting)
        del self._sessions[session_id]
        await self._end(session_id, scope)
        return True

    async def _end(self, session_id: str, scope: Scope) -> None:
        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            """Drop the answer: there is no client for it."""

        headers = [(SESSION, session_id.encode())]
        await self._app({**scope, "method": "DELETE", "headers": headers}, receive, send)

    async def _refuse(self, send: Send) -> None:
        reason = (
            f"{self._most} sessions are open, which is the limit, and all were used within the last"
            f" {self._rest_s:g} s: end sessions that are not needed with DELETE, or try again in"
            f" {self._rest_s:g} s"
        )
        error = {"code": _SERVER_ERROR, "message": reason}
        body = json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"retry-after", b"%d" % max(1, round(self._rest_s))),
        ]
        await send({"type": "http.response.start", "status": 503, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> str:
    """The value of a header, whose names are in lower case; empty if it is missing."""
    return next((value.decode("latin-1") for each, value in headers if each == name), "")
