"""The HTTP gateway's server: a socket on TCP, bound before anything is served.

It refuses to be unsafe (see `HttpSettings.objections`), installs no signal handler, sets up no
logging, and leaves no thread or descriptor behind.
"""

from __future__ import annotations

import os
import socket
import ssl
import threading
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from loguru import logger

from ..api.app import create_app
from ..gateway_errors import GatewayError
from ..operator import Operator
from ..serving.call_pools import Lanes
from ..serving.server_thread import Serving, identity
from ..settings.http_settings import Address, HttpSettings
from .auth_app import Door, Rules
from .login_sessions import Role
from .origin_rules import House
from .static_files import read_pages
from .tcp_protocol import protocol_for
from .tokens import Tokens, keep_tokens


class HttpServer:
    """The routes and the dashboard of one operator over TCP. A context manager, or `start` and `stop`."""

    def __init__(self, operator: Operator, directory: Path, settings: HttpSettings | None = None) -> None:
        """Describe a server; nothing runs yet.

        Args:
            operator: who carries out what is asked.
            directory: the state directory, where the tokens are kept.
            settings: where it listens, and whom it lets in.
        """
        self._operator = operator
        self._directory = directory
        self._settings = settings or HttpSettings()
        self._process = os.getpid()
        self._life = threading.Lock()
        self._tokens: Tokens | None = None
        self._socket: socket.socket | None = None
        self._serving: Serving | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Where browsers find it."""
        return self._settings.url

    @property
    def tokens(self) -> Tokens:
        """What people show at the door.

        Raises:
            GatewayError: it was not started.
        """
        if self._tokens is None:
            raise GatewayError("the HTTP gateway was not started")
        return self._tokens

    def link(self, role: Role) -> str:
        """The address with a token in its fragment, which browsers send to nobody."""
        return link(self.url, self.tokens.of(role))

    def start(self) -> None:
        """Bind the socket and answer from now on; a server that runs is left alone.

        Raises:
            UnsafePathError: somebody else could read or change the tokens.
            GatewayError: it would not be safe, or it cannot be bound or served.
        """
        with self._life:
            if self._serving is not None:
                return
            _check(self._settings)
            self._tokens = keep_tokens(self._directory)
            self._socket = listening = bound(self._settings.listen)
            port = listening.getsockname()[1]
            self._settings = replace(self._settings, listen=replace(self._settings.listen, port=port))
            try:
                self._serve(listening, self._tokens)
            except BaseException:
                self._end()
                raise
            if not self._settings.listen.is_loopback:
                logger.warning("the dashboard can be reached from other machines, at {}", self.url)

    def stop(self) -> None:
        """End in time, whatever the clients do. A second call does nothing, nor does one in a fork."""
        if os.getpid() != self._process:
            return
        with self._life:
            self._end()

    def _serve(self, listening: socket.socket, tokens: Tokens) -> None:
        lanes = Lanes()
        api = create_app(
            self._operator,
            identity(self._directory, self.url),
            lanes,
            most_followers=self._settings.max_clients,
        )
        door = Door(api, read_pages(), self._rules(tokens))
        self._serving = Serving(
            door,
            lanes,
            name="the HTTP gateway",
            protocol=protocol_for(self._settings.max_clients),
            **_tls(self._settings),
        )
        self._serving.start(listening, "rekindle-http")

    def _rules(self, tokens: Tokens) -> Rules:
        settings, port = self._settings, self._settings.listen.port
        schemes = {"http", "https"} if settings.behind_proxy else {"https" if settings.has_tls else "http"}
        return Rules(
            house=House(settings.allowed_hosts(port), frozenset(schemes)),
            tokens=tokens,
            cookie=f"rekindle-{port}",
            secure=settings.has_tls,
            read_only=settings.read_only,
            max_clients=settings.max_clients,
            shares_address=settings.listen.is_loopback or settings.behind_proxy,
        )

    def _end(self) -> None:
        if self._serving is not None:
            self._serving.stop()
        if self._socket is not None:
            self._socket.close()
        self._socket = self._serving = None


def link(url: str, token: str) -> str:
    """An address with a token in its fragment."""
    return f"{url}#token={token}"


def bound(address: Address) -> socket.socket:
    """A socket at that address, which nobody is let in by yet.

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
            "name another address: --http ADDRESS:PORT, or listen in [http]"
        ) from error
    return made


def _check(settings: HttpSettings) -> None:
    objections = [f"{field} {reason}" for field, reason in settings.objections()]
    if objections:
        raise GatewayError(f"the HTTP gateway is not started: {'; '.join(objections)}")


def _tls(settings: HttpSettings) -> dict[str, Any]:
    if settings.tls_cert is None or settings.tls_key is None:
        return {}
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.tls_cert, settings.tls_key)
    except (OSError, ssl.SSLError) as error:
        raise GatewayError(f"the certificate and its key cannot be used: {error}") from error
    return {"ssl_certfile": str(settings.tls_cert), "ssl_keyfile": str(settings.tls_key)}
