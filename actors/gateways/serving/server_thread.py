"""One application on one thread, served by uvicorn on a socket that is already bound.

It installs no signal handler, configures no logging, and leaves no thread or descriptor behind:
`stop` returns within `STOP_S`, even if clients stall. Every gateway that speaks HTTP has one.
"""

from __future__ import annotations

import socket
import threading
from typing import Any

from loguru import logger

from ..gateway_errors import GatewayError
from .call_pools import CallPools
from .uvicorn_server import MOST_CONNECTIONS, HttpProtocol, UvicornServer

START_S = 20.0
JOIN_S = 0.2
"""How long idle threads may take to end; a thread whose call continues is abandoned."""
STOP_S = 3.0


class ServerThread:
    """An application that is served on a thread of its own, until `stop`."""

    def __init__(
        self,
        app: Any,
        pools: CallPools,
        *,
        name: str,
        protocol: type[HttpProtocol],
        most_connections: int = MOST_CONNECTIONS,
        **settings: Any,
    ) -> None:
        """Describe it; nothing runs yet.

        Args:
            app: the application.
            pools: where its blocking calls run.
            name: the component in log lines: "control", "http".
            protocol: the class of its connections.
            most_connections: how many it may have; fewer if the process may open few descriptors.
            settings: further settings of uvicorn.
        """
        self._name = name
        self._server = UvicornServer(app, pools, name, protocol, most_connections, settings)
        self._thread: threading.Thread | None = None

    def start(self, listening: socket.socket, thread_name: str) -> None:
        """Serve from now on; the socket is closed with the server.

        Raises:
            GatewayError: the application could not be served.
        """
        server = self._server
        self._thread = threading.Thread(
            target=server.serve_on, args=(listening,), name=thread_name, daemon=True
        )
        self._thread.start()
        if not server.ready.wait(START_S) or server.failure is not None:
            raise GatewayError(f"{self._name}: the server did not start: {server.failure!r}")

    def stop(self) -> None:
        """End within `STOP_S`."""
        if self._thread is None:
            return
        self._server.end()
        self._thread.join(STOP_S)
        if self._thread.is_alive():
            logger.error("{}: server did not stop within {} s", self._name, STOP_S)
        self._server.pools.join(JOIN_S)
        self._thread = None
