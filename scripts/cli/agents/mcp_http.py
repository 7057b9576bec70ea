"""The tools over HTTP, behind the tokens of the HTTP gateway: a process of its own beside the supervisor.

It is not a part of the supervisor, so that neither the size of the protocol's package nor anything
that an agent sends can touch supervision: all it does goes through the control socket.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings

from rekindle.actors.gateways.http import ClientRole, HttpSettings
from rekindle.actors.gateways.http.http_server import TcpProtocol, bound, check, own_hosts, tls_settings
from rekindle.actors.gateways.http.token_app import TokenApp
from rekindle.actors.gateways.http.tokens import load_tokens
from rekindle.actors.gateways.serving.call_pools import CallPools
from rekindle.actors.gateways.serving.server_thread import ServerThread

from .session_room import SessionRoom

PATH = "/mcp"
MOST_SESSIONS = 64
"""For each role, so that viewers cannot keep operators out."""
REST_S = 30.0
"""A session that was not used for this time makes room for a new one, if there is no other room."""
IDLE_S = 300.0
"""A session without a request ends after this time: many clients begin one for each call and end none."""


def serve(
    state: Path,
    settings: HttpSettings,
    servers: dict[ClientRole, MCPServer[Any]],
    announce: Callable[[str], None],
) -> None:
    """Serve until SIGINT or SIGTERM.

    Args:
        state: the state directory, with the tokens.
        settings: where it listens, and by which names it is reached.
        servers: the tools of each role.
        announce: is told the URL.

    Raises:
        UnsafePathError: another user could read or change the tokens.
        GatewayError: the settings are unsafe, or the socket cannot be bound or served.
    """
    check(settings)
    tokens = load_tokens(state)
    listening = bound(settings.listen)
    port = listening.getsockname()[1]
    settings = replace(settings, listen=replace(settings.listen, port=port))
    apps = {role: _Endpoint(server) for role, server in servers.items()}
    app = TokenApp(PATH, apps, own_hosts(settings), tokens)
    serving = ServerThread(app, CallPools(), name="mcp", protocol=TcpProtocol, **tls_settings(settings))
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    serving.start(listening, "rekindle-mcp")
    try:
        announce(settings.url.rstrip("/") + PATH)
        ended.wait()
    finally:
        serving.stop()


class _Endpoint:
    """One server's sessions; they live in a task of their own, which ends with the event loop."""

    def __init__(self, server: MCPServer[Any]) -> None:
        app = server.streamable_http_app(
            json_response=True,
            streamable_http_path=PATH,
            max_sessions=2 * MOST_SESSIONS,  # a session that makes room may still be ending
            session_idle_timeout=IDLE_S,
            # `TokenApp` has checked Host and Origin, by the names of the settings.
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        self._app = SessionRoom(app, most=MOST_SESSIONS, rest_s=REST_S, idle_s=IDLE_S)
        self._manager = server.session_manager
        self._life: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle a request."""
        if self._life is None:
            self._life = asyncio.create_task(self._live())
        await self._ready.wait()
        await self._app(scope, receive, send)

    async def _live(self) -> None:
        try:
            async with self._manager.run():
                self._ready.set()
                await asyncio.Event().wait()
        finally:
            self._ready.set()
