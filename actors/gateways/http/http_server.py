"""The HTTP gateway: a TCP socket that is bound before anything is served.

It refuses unsafe settings (see `HttpSettings.objections`), installs no signal handler, configures no
logging, and leaves no thread or descriptor behind.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from loguru import logger

from ..api.app import create_app
from ..gateway_errors import GatewayError
from ..operator import Operator
from ..secret_file import check_secret
from ..server_identity import identity
from ..serving.call_pools import CallPool, CallPools
from ..serving.held_app import HeldApp
from ..serving.listener import room_for
from ..serving.server_thread import ServerThread
from ..serving.uvicorn_server import HttpProtocol
from ..settings.http_settings import Address, HttpSettings
from .auth_app import AuthApp, AuthSettings
from .login_sessions import ClientRole, Sessions
from .orchestrator_probes import OrchestratorProbes
from .origin_rules import OwnHosts
from .session_file import SessionFile
from .static_files import read_static_files
from .tokens import Tokens, load_tokens

ROOM_FOR_REQUESTS = 64
"""Connections beside the event streams: a browser opens a few, and idle ones are closed to make room."""


class TcpProtocol(HttpProtocol):
    """A connection on TCP, where the kernel knows no peer; `AuthApp` decides who may send requests."""

    def _may_connect(self, transport: asyncio.Transport) -> bool:
        return True


class HttpServer:
    """The routes and the dashboard of one operator over TCP. A context manager, or `start` and `stop`."""

    def __init__(
        self,
        operator: Operator,
        directory: Path,
        settings: HttpSettings | None = None,
        *,
        inherited: int | None = None,
        held: bool = False,
    ) -> None:
        """Describe a server; nothing runs yet.

        Args:
            operator: carries out the requests.
            directory: the state directory, which holds the tokens.
            settings: where it listens, and which requests it accepts.
            inherited: the listening socket, if the former program of this process bound it.
            held: let requests wait for `open`; a start that fails leaves an inherited socket as it was.
        """
        self._inherited = inherited
        self._is_held = held
        self._held: HeldApp | None = None
        self._kept = -1
        """A second descriptor of the listening socket, which stays open when the server ends."""
        self._operator = operator
        self._directory = directory
        self._settings = settings or HttpSettings()
        self._process = os.getpid()
        self._life = threading.Lock()
        self._tokens: Tokens | None = None
        self._socket: socket.socket | None = None
        self._serving: ServerThread | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """The URL for browsers."""
        return self._settings.url

    @property
    def tokens(self) -> Tokens:
        """The tokens that clients send.

        Raises:
            GatewayError: the server was not started.
        """
        if self._tokens is None:
            raise GatewayError("the HTTP gateway was not started")
        return self._tokens

    def link(self, role: ClientRole) -> str:
        """The URL with a token in its fragment, which browsers do not send."""
        return link(self.url, self.tokens.of(role))

    def start(self) -> None:
        """Bind the socket and serve; does nothing if the server already runs.

        Raises:
            UnsafePathError: another user could read or change the tokens.
            GatewayError: the settings are unsafe, or the socket cannot be bound or served.
        """
        with self._life:
            if self._serving is not None:
                return
            check(self._settings)
            self._tokens = load_tokens(self._directory)
            self._socket = listening = self._bound()
            self._kept = os.dup(listening.fileno())
            port = listening.getsockname()[1]
            self._settings = replace(self._settings, listen=replace(self._settings.listen, port=port))
            try:
                self._serve(listening, self._tokens)
            except BaseException:
                if not self._is_held:  # else the former program returns
                    self._end()
                raise
            if not self._settings.listen.is_loopback:
                logger.warning("http: the dashboard is reachable from other machines: url={}", self.url)

    def open(self) -> None:
        """Answer requests that were held: the former program of this process can no longer return."""
        if self._inherited is not None:
            os.close(self._inherited)
            self._inherited = None
        if self._held is not None:
            self._held.open()

    def stop(self) -> None:
        """Stop in time, even if clients stall. A second call does nothing, nor does one in a fork."""
        if os.getpid() != self._process:
            return
        with self._life:
            self._end()

    def leave(self) -> int:
        """Serve no longer, and keep the socket open for the program that follows; its descriptor."""
        with self._life:
            if self._serving is not None:
                self._serving.stop()
            self._serving = None
            return self._kept

    def _bound(self) -> socket.socket:
        """The socket of the former program, if it has the address of the settings, or a new one.

        The former program's own descriptor is closed when it can no longer return.
        """
        wanted = self._settings.listen
        if self._inherited is not None:
            found = socket.socket(fileno=os.dup(self._inherited))
            host, port = found.getsockname()[:2]
            if host == wanted.host and wanted.port in (port, 0):
                return found
            found.close()
        return bound(wanted)

    def _serve(self, listening: socket.socket, tokens: Tokens) -> None:
        pools = CallPools()
        most = room_for(self._settings.max_clients + ROOM_FOR_REQUESTS)
        api = create_app(
            self._operator,
            identity(self._directory, self.url, has_probes=True),
            pools,
            most_followers=max(most - ROOM_FOR_REQUESTS, most // 2),
        )
        stored = SessionFile(self._directory, tokens)
        sessions = Sessions(stored.load(), time.time, stored.save)
        probes = OrchestratorProbes(lambda: pools.run(CallPool.QUERY, self._operator.report))
        app = AuthApp(api, read_static_files(), self._auth_settings(tokens), sessions, probes)
        self._held = HeldApp(app) if self._is_held else None
        self._serving = ServerThread(
            self._held or app,
            pools,
            name="http",
            protocol=TcpProtocol,
            most_connections=most,
            **tls_settings(self._settings),
        )
        self._serving.start(listening, "rekindle-http")

    def _auth_settings(self, tokens: Tokens) -> AuthSettings:
        settings = self._settings
        return AuthSettings(
            own_hosts=own_hosts(settings),
            tokens=tokens,
            read_only=settings.read_only,
            max_clients=settings.max_clients,
            shares_address=settings.listen.is_loopback or settings.behind_proxy,
        )

    def _end(self) -> None:
        if self._serving is not None:
            self._serving.stop()
        if self._socket is not None:
            self._socket.close()
        if self._kept != -1:
            os.close(self._kept)
            self._kept = -1
        self._socket = self._serving = None


def own_hosts(settings: HttpSettings) -> OwnHosts:
    """The names and schemes by which a server of these settings, with its actual port, is reached."""
    schemes = {"http", "https"} if settings.behind_proxy else {"https" if settings.has_tls else "http"}
    return OwnHosts(settings.allowed_hosts(settings.listen.port), frozenset(schemes))


def link(url: str, token: str) -> str:
    """A URL with a token in its fragment."""
    return f"{url}#token={token}"


def bound(address: Address) -> socket.socket:
    """A socket that is bound to the address and does not listen yet.

    Raises:
        GatewayError: it cannot be bound.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind((address.host, address.port))
    except OSError as error:
        made.close()
        raise GatewayError(
            f"the HTTP gateway cannot listen on {address}: {error.strerror}; "
            "choose another address with --http ADDRESS:PORT, or with listen in [http]"
        ) from error
    return made


def check(settings: HttpSettings) -> None:
    """Refuse unsafe settings.

    Raises:
        GatewayError: they are unsafe, or contradict each other.
    """
    objections = [f"{field} {reason}" for field, reason in settings.objections()]
    if objections:
        raise GatewayError(f"the HTTP gateway cannot start: {'; '.join(objections)}")


def tls_settings(settings: HttpSettings) -> dict[str, Any]:
    """The settings of uvicorn for TLS; empty without it.

    Raises:
        UnsafePathError: another user may read or change the key.
        GatewayError: the certificate or its key cannot be loaded.
    """
    if settings.tls_cert is None or settings.tls_key is None:
        return {}
    check_secret(settings.tls_key, group_may_read=True)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.tls_cert, settings.tls_key)
    except (OSError, ssl.SSLError) as error:
        raise GatewayError(f"cannot load the certificate and its key: {error}") from error
    return {"ssl_certfile": str(settings.tls_cert), "ssl_keyfile": str(settings.tls_key)}
