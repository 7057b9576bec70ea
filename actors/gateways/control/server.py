"""The server: uvicorn on one thread, on a socket that was bound beforehand.

It installs no signal handler, sets up no logging, and leaves no thread, descriptor or file
behind: `stop` takes no more than `STOP_S`, whatever the clients do.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import uvicorn
from loguru import logger

from ..errors import GatewayError
from ..operator import Operator
from .app import create_app
from .lanes import Lanes
from .protocol import ControlProtocol, mine
from .served import Identity
from .socket_file import SOCKET_NAME, SocketFile

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


class ControlServer:
    """The control socket of one operator. Use it as a context manager, or call `start` and `stop`."""

    def __init__(self, operator: Operator, directory: Path, *, replace_stale: bool = False) -> None:
        """Describe a server; nothing runs yet.

        Args:
            operator: who carries out what is asked.
            directory: where `control.sock` shall be; created with mode 0700 if it is missing.
            replace_stale: replace the socket file of a server that is dead. Only whoever holds
                the lock of this directory's store may say so.
        """
        self._operator = operator
        self._directory = directory
        self._replace_stale = replace_stale
        self._process = os.getpid()
        self._life = threading.Lock()
        self._file: SocketFile | None = None
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def path(self) -> Path:
        """Where clients connect to."""
        return self._directory / SOCKET_NAME

    def start(self) -> None:
        """Bind the socket and answer from now on; a server that runs is left alone.

        Raises:
            UnsafePathError: somebody else could tamper with the directory or the socket.
            GatewayError: there is a socket already, or none can be made.
        """
        with self._life:
            if self._thread is not None:
                return
            self._file = SocketFile(self._directory, replace_stale=self._replace_stale)
            try:
                self._serve(self._file.socket)
            except BaseException:
                self._end()
                raise

    def stop(self) -> None:
        """Remove the socket and end within `STOP_S`. A second call does nothing, nor does one in a fork."""
        if os.getpid() != self._process:
            return
        with self._life:
            self._end()

    def _serve(self, listening: socket.socket) -> None:
        lanes = Lanes()
        self._server = server = _Server(create_app(self._operator, self._identity(), lanes), lanes)
        self._thread = threading.Thread(
            target=server.serve_on, args=(listening,), name="rekindle-control", daemon=True
        )
        self._thread.start()
        if not server.ready.wait(START_S) or server.failure is not None:
            raise GatewayError(f"the control socket could not be served: {server.failure!r}")

    def _end(self) -> None:
        if self._file is not None:
            self._file.remove()
        if self._server is not None and self._thread is not None:
            self._server.end()
            self._thread.join(STOP_S)
            if self._thread.is_alive():
                logger.error("the control socket did not end within {} s", STOP_S)
            self._server.lanes.join(JOIN_S)
        if self._file is not None:
            self._file.close()
        self._file = self._server = self._thread = None

    def _identity(self) -> Identity:
        started = time.time_ns() // 1_000_000
        return Identity(_version(), os.getpid(), started, self._directory.absolute())


class _Server(uvicorn.Server):
    """uvicorn without its ticking, and with an end that does not depend on the clients."""

    def __init__(self, app: Any, lanes: Lanes) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                loop="asyncio",
                http=ControlProtocol,
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
            )
        )
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
                logger.opt(exception=error).error("the control socket has ended")
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
        self._running.set_exception_handler(_note)
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


def _note(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    logger.opt(exception=context.get("exception")).error("the control socket: {}", context["message"])


def _version() -> str:
    try:
        return metadata.version("rekindle")
    except metadata.PackageNotFoundError:
        return "unknown"
