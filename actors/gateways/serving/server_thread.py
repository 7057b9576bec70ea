"""One application on one thread: uvicorn on a socket that was bound beforehand.

It installs no signal handler, sets up no logging, and leaves no thread or descriptor behind:
`stop` takes no more than `STOP_S`, whatever the clients do. Every gateway that speaks HTTP has one.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import uvicorn
from loguru import logger

from ..gateway_errors import GatewayError
from ..server_identity import Identity
from .call_pools import Lanes
from .http_protocol import ControlProtocol, mine

START_S = 20.0
GRACE_S = 1.0
"""How long requests that are under way may still take once the server stops."""
FAREWELL_S = 0.3
"""How long a client may then take to read that we stop."""
JOIN_S = 0.2
"""How long threads may take to end that have nothing to do; one whose call goes on is left to it."""
STOP_S = 3.0
ROUNDS_TO_CONNECT = 5
"""Rounds of the event loop from an accepted connection to its protocol, and some more."""


class Serving:
    """An application that is served on a thread of its own, until `stop`."""

    def __init__(
        self, app: Any, lanes: Lanes, *, name: str, protocol: type[ControlProtocol], **settings: Any
    ) -> None:
        """Describe it; nothing runs yet.

        Args:
            app: the application.
            lanes: where its calls are carried out.
            name: what the log calls it: "the control socket".
            protocol: one connection of it.
            settings: what else uvicorn is told.
        """
        self._name = name
        self._server = _Server(app, lanes, name, protocol, settings)
        self._thread: threading.Thread | None = None

    def start(self, listening: socket.socket, thread_name: str) -> None:
        """Answer from now on.

        Raises:
            GatewayError: it could not be served.
        """
        server = self._server
        self._thread = threading.Thread(
            target=server.serve_on, args=(listening,), name=thread_name, daemon=True
        )
        self._thread.start()
        if not server.ready.wait(START_S) or server.failure is not None:
            raise GatewayError(f"{self._name} could not be served: {server.failure!r}")

    def stop(self) -> None:
        """End within `STOP_S`. The listening socket is the caller's."""
        if self._thread is None:
            return
        self._server.end()
        self._thread.join(STOP_S)
        if self._thread.is_alive():
            logger.error("{} did not end within {} s", self._name, STOP_S)
        self._server.lanes.join(JOIN_S)
        self._thread = None


class _Server(uvicorn.Server):
    """uvicorn without its ticking, and with an end that does not depend on the clients."""

    def __init__(
        self,
        app: Any,
        lanes: Lanes,
        name: str,
        protocol: type[ControlProtocol],
        settings: dict[str, Any],
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                loop="asyncio",
                http=protocol,
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
        self.ready = threading.Event()
        self.failure: BaseException | None = None
        self.lanes = lanes
        self._running: asyncio.AbstractEventLoop | None = None
        self._ending = asyncio.Event()

    def serve_on(self, listening: socket.socket) -> None:
        """Serve until `end`. uvicorn takes signals on the main thread only, and this is another."""
        try:
            self.run(sockets=[listening])
        except BaseException as error:  # noqa: BLE001  # whoever started us hears of it, or the log does
            self.failure = error
            if self.ready.is_set():
                logger.opt(exception=error).error("{} has ended", self._name)
        finally:
            self.ready.set()

    def end(self) -> None:
        """Begin to end; from any thread."""
        if self._running is not None and not self._running.is_closed():
            try:
                self._running.call_soon_threadsafe(self._ending.set)
            except RuntimeError:
                return  # it has closed between the two lines

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        self._running = asyncio.get_running_loop()
        self._running.set_exception_handler(self._note)
        await super().startup(sockets)
        self.ready.set()

    async def main_loop(self) -> None:
        """Wait for the end, without waking up in between."""
        await self.on_tick(0)
        await self._ending.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let requests end for a moment, then answer that we stop, then cut."""
        loop = asyncio.get_running_loop()
        await self._let_in_nobody(loop, sockets or [])
        for end in self.lanes.before_closing:
            end()
        timers = [
            loop.call_later(GRACE_S, self.lanes.close),
            loop.call_later(GRACE_S + FAREWELL_S, self._cut),
        ]
        await super().shutdown(sockets)
        for timer in timers:
            timer.cancel()
        self.lanes.close()
        self._cut()
        await asyncio.sleep(0)  # for the transports to close their sockets

    async def _let_in_nobody(self, loop: asyncio.AbstractEventLoop, sockets: list[socket.socket]) -> None:
        # asyncio drops a connection unclosed that it accepted just before its server was closed. So
        # accepting ends first, and those that were let in meanwhile get their transport.
        for listening in sockets:
            loop.remove_reader(listening.fileno())
        for _ in range(ROUNDS_TO_CONNECT):
            await asyncio.sleep(0)

    def _cut(self) -> None:
        for connection in mine(self.server_state.connections):
            connection.cut()

    def _note(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        logger.opt(exception=context.get("exception")).error("{}: {}", self._name, context["message"])


def identity(directory: Path, dashboard: str | None) -> Identity:
    """What a server of this process says of itself."""
    started = time.time_ns() // 1_000_000
    return Identity(_version(), os.getpid(), started, directory.absolute(), dashboard)


def _version() -> str:
    try:
        return metadata.version("rekindle")
    except metadata.PackageNotFoundError:
        return "unknown"
