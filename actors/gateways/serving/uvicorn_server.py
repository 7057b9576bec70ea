"""Everything of uvicorn that is not its documented interface: its h11 protocol and the steps of its server.

uvicorn has no public way to set a deadline for each phase of a connection, to limit connections by
closing idle ones, or to stop within a fixed time, so two of its classes are subclassed here and nowhere
else. Tested with uvicorn 0.54.0 and h11 0.16.0. The names that this module relies on are
`H11Protocol.conn, cycle, flow, connections, app_state, loop, transport, logger, access_log,
send_400_response, on_response_complete` and `Server.startup, main_loop, on_tick, shutdown, server_state`;
`tests/control/test_uvicorn_internals.py` fails if one of them changes.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Iterable
from functools import partial
from typing import Any

import h11
import uvicorn
from loguru import logger
from uvicorn.protocols.http.h11_impl import H11Protocol

from .call_pools import CallPool, CallPools
from .json_values import ProblemDocument, encode
from .listener import Listener, room_for
from .peer import may_connect, peer_of
from .repeated_log import RepeatedFilter, RepeatedLog

MOST_CONNECTIONS = 128
"""At most half of them stream events, so that other requests always find room."""
REQUEST_S = 5.0
"""How long a client may take to send a request, and how long it may be idle after a response."""
RESPONSE_S = max(pool.timeout_s for pool in CallPool) + 10.0
"""How long a response may take, with a client that reads it slowly."""
GRACE_S = 1.0
"""How long running requests may still take once the server stops."""
FAREWELL_S = 0.3
"""How long a client may then take to read that the server stops."""
ROUNDS_TO_CONNECT = 5
"""Rounds of the event loop from an accepted connection to its protocol, with a margin."""

# uvicorn's own loggers would reach stderr in a host that has not configured logging.
_log = logging.getLogger("rekindle.control")
_log.addHandler(logging.NullHandler())
_log.addFilter(RepeatedFilter())


class HttpProtocol(H11Protocol):
    """One connection, with a deadline in every phase: request, response, idle.

    A client that sends nothing, sends byte by byte, or never reads its response is disconnected.
    On a unix socket the kernel's word on the peer decides who may connect.
    """

    def __init__(self, server: UvicornServer, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._server = server
        self.logger = _log
        self.access_log = False
        self.since = 0.0
        self._accepted = False
        self._streams = False
        """The response is endless; only a client that does not read it is disconnected."""
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection if the peer may connect and there is room."""
        self.transport = transport
        self._server.established(transport)
        if not self._may_connect(transport):
            return
        if not self._make_room():
            self._reject(503, "busy", f"{self._server.most_connections} requests are in progress")
            return
        self._accepted = True
        self.app_state = {**self.app_state, "connection": self}
        self.since = self.loop.time()
        super().connection_made(transport)
        self._set_deadline(REQUEST_S)

    def data_received(self, data: bytes) -> None:
        """Read on; once a request is complete, the deadline is that of its response."""
        if not self._accepted:
            return
        super().data_received(data)
        if self.conn.their_state in (h11.DONE, h11.MUST_CLOSE) and self.conn.our_state is not h11.DONE:
            self._set_response_deadline()

    def on_response_complete(self) -> None:
        """Wait for the next request, and for the client to read this response, but not for long."""
        self.since = self.loop.time()
        self._streams = False
        self._set_deadline(REQUEST_S)
        super().on_response_complete()
        if not self.idle:  # the next request was already there
            self._set_response_deadline()

    def pause_writing(self) -> None:
        """The client does not read what is sent; wait, but not for long."""
        super().pause_writing()
        self._set_deadline(REQUEST_S)

    def resume_writing(self) -> None:
        """The client reads again."""
        super().resume_writing()
        self._set_deadline(REQUEST_S) if self.idle else self._set_response_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        if self._deadline is not None:
            self._deadline.cancel()
        if self._accepted:
            super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP, if a response can still be sent."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(_response(400, "malformed", msg))
        self.transport.close()

    @property
    def idle(self) -> bool:
        """Whether no request is in progress."""
        return self.cycle is None or self.cycle.response_complete

    def cut(self) -> None:
        """Close the connection at once, even within a response."""
        self.transport.abort()

    def stream(self) -> None:
        """Let this response run without a deadline, as long as the client reads it."""
        self._streams = True
        self._set_response_deadline()

    def _may_connect(self, transport: asyncio.Transport) -> bool:
        """Whether the peer may send requests; if not, it was sent a refusal."""
        peer = peer_of(transport.get_extra_info("socket"))
        if peer is None or not may_connect(peer.uid):
            self._reject(403, "forbidden", "this socket belongs to another user")
            return False
        self.app_state = {**self.app_state, "peer": peer}
        return True

    def _make_room(self) -> bool:
        if len(self.connections) < self._server.most_connections:
            return True
        idle = [each for each in _ours(self.connections) if each.idle]
        if not idle:
            return False
        oldest = min(idle, key=lambda each: each.since)
        self.connections.discard(oldest)
        oldest.cut()
        return True

    def _reject(self, status: int, error: str, message: str) -> None:
        _log.warning("http: connection rejected: %s", message)
        self.transport.write(_response(status, error, message))
        self.transport.close()
        self._set_deadline(REQUEST_S)

    def _set_response_deadline(self) -> None:
        if self.flow.write_paused:
            return
        if not self._streams:
            self._set_deadline(RESPONSE_S)
        elif self._deadline is not None:
            self._deadline.cancel()

    def _set_deadline(self, seconds: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(seconds, self.cut)


class UvicornServer(uvicorn.Server):
    """uvicorn without its periodic tick, and with a stop that does not depend on the clients."""

    def __init__(
        self,
        app: Any,
        pools: CallPools,
        name: str,
        protocol: type[HttpProtocol],
        most_connections: int,
        settings: dict[str, Any],
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                loop="asyncio",
                http=partial(protocol, self),  # type: ignore[arg-type]  # uvicorn calls it, no more
                ws="none",
                lifespan="off",
                interface="asgi3",
                log_config=None,
                access_log=False,
                workers=1,
                proxy_headers=False,
                server_header=False,
                date_header=False,
                backlog=64,
                timeout_keep_alive=5,
                timeout_graceful_shutdown=2,
                h11_max_incomplete_event_size=16 * 1024,
                **settings,
            )
        )
        self._name = name
        self.most_connections = room_for(most_connections)
        self.repeated = RepeatedLog()
        self._listener: Listener | None = None
        self.ready = threading.Event()
        self.failure: BaseException | None = None
        self.pools = pools
        self._running: asyncio.AbstractEventLoop | None = None
        self._ending = asyncio.Event()

    def serve_on(self, listening: socket.socket) -> None:
        """Serve until `end`. uvicorn installs signal handlers on the main thread only; this is another."""
        self._listener = Listener(listening, self.most_connections, tls=self.config.is_ssl)
        try:
            self.run(sockets=[self._listener])
        except BaseException as error:  # noqa: BLE001  # `start` raises it, or it is logged
            self.failure = error
            if self.ready.is_set():
                logger.opt(exception=error).error("{}: server ended", self._name)
        finally:
            self._listener.close()
            self.ready.set()

    def established(self, transport: asyncio.BaseTransport) -> None:
        """A connection has its protocol: the TLS handshake, if there is one, is done."""
        if self._listener is not None:
            self._listener.established(transport.get_extra_info("socket").fileno())

    def end(self) -> None:
        """Begin to stop; from any thread."""
        if self._running is not None and not self._running.is_closed():
            try:
                self._running.call_soon_threadsafe(self._ending.set)
            except RuntimeError:
                return  # the loop was closed between the two lines

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        self._running = asyncio.get_running_loop()
        self._running.set_exception_handler(self._log_exception)
        await super().startup(sockets)
        self.ready.set()

    async def main_loop(self) -> None:
        """Wait for the end without waking up in between."""
        await self.on_tick(0)
        await self._ending.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let requests finish for a moment, then refuse the rest, then close all connections."""
        loop = asyncio.get_running_loop()
        await self._stop_accepting(loop, sockets or [])
        for end in self.pools.before_closing:
            end()
        timers = [
            loop.call_later(GRACE_S, self.pools.close),
            loop.call_later(GRACE_S + FAREWELL_S, self._cut),
        ]
        await super().shutdown(sockets)
        for timer in timers:
            timer.cancel()
        self.pools.close()
        self._cut()
        await asyncio.sleep(0)  # for the transports to close their sockets

    async def _stop_accepting(self, loop: asyncio.AbstractEventLoop, sockets: list[socket.socket]) -> None:
        # asyncio leaves a connection unclosed that it accepted just before its server was closed. So
        # accepting ends first, and connections that were accepted meanwhile get their transport.
        for listening in sockets:
            loop.remove_reader(listening.fileno())
        for _ in range(ROUNDS_TO_CONNECT):
            await asyncio.sleep(0)

    def _cut(self) -> None:
        for connection in _ours(self.server_state.connections):
            connection.cut()

    def _log_exception(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        # asyncio has a message for each kind of error; clients can cause some of them.
        message, error = context["message"], context.get("exception")
        if isinstance(error, OSError):
            self.repeated.log(message, f"{self._name}: {message}: {error}", "ERROR")
        else:
            logger.opt(exception=error).error("{}: {}", self._name, message)


def _ours(connections: Iterable[object]) -> list[HttpProtocol]:
    return [each for each in connections if isinstance(each, HttpProtocol)]


def _response(status: int, error: str, message: str) -> bytes:
    body = encode(ProblemDocument(error, message))
    head = f"HTTP/1.1 {status} Refused\r\ncontent-type: application/json\r\nconnection: close\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode("ascii") + body
