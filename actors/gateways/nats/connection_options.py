"""Connects to a server: login, TLS, and the checks before the gateway starts."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..gateway_errors import GatewayError, MissingExtraError
from ..secret_file import check_secret, read_secret
from ..settings.nats_settings import NatsSettings
from .client_internals import abort, is_encrypted
from .nats_link import Link, LinkError, reason

if TYPE_CHECKING:
    from nats.aio.client import Client

CONNECT_S = 3.0
"""How long one server may take to accept the connection."""
NEVER_S = 10**9
NOT_ENCRYPTED = "the server does not offer TLS, which the settings require"


async def connect(server: str, settings: NatsSettings, name: str) -> Link:
    """Connect to one server.

    Raises:
        LinkError: it cannot be reached, or refuses the connection.
        GatewayError: a required file is missing or unsafe.
    """
    from nats import errors
    from nats.aio.client import Client

    client = Client()
    reported: list[Exception] = []

    async def on_error(error: Exception) -> None:
        reported.append(error)

    try:
        async with asyncio.timeout(CONNECT_S):
            await client.connect(
                servers=[server],
                name=name,
                error_cb=on_error,
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                connect_timeout=round(CONNECT_S),
                ping_interval=NEVER_S,
                **_login(settings, client),
                **_tls(settings),
            )
        if settings.encrypted and not is_encrypted(client):
            raise LinkError(NOT_ENCRYPTED)
    except (errors.Error, OSError, TimeoutError, LinkError, RuntimeError, ValueError) as error:
        abort(client)
        raise LinkError(reason(reported[0] if reported else error)) from None
    except BaseException:
        abort(client)
        raise
    return Link(client, server, settings)


def check(settings: NatsSettings) -> None:
    """Refuse settings that cannot work on this machine, before anything starts.

    Raises:
        MissingExtraError: nats-py is not installed, or nkeys, which .creds files need.
        GatewayError: a required file is missing or unsafe.
    """
    try:
        import nats.aio.client  # noqa: F401
    except ImportError:
        raise MissingExtraError("the NATS gateway", "nats") from None
    if settings.login.credentials is not None and find_spec("nkeys") is None:
        raise MissingExtraError("a .creds file", "nats")
    login = settings.login
    for path in (login.credentials, login.password_file, login.token_file, settings.tls.key):
        if path is not None:
            check_secret(Path(path))
    _tls(settings)


def _login(settings: NatsSettings, client: Client) -> dict[str, Any]:
    login = settings.login

    def secret(path: str) -> Callable[[], str]:
        def read() -> str:
            # nats-py calls this just before it sends the secret: never send it unencrypted.
            if settings.encrypted and not is_encrypted(client):
                raise LinkError(NOT_ENCRYPTED)
            return read_secret(Path(path))

        return read

    if login.credentials is not None:
        check_secret(Path(login.credentials))
        return {"user_credentials": login.credentials}
    if login.password_file is not None:
        return {"user": login.user, "password": secret(login.password_file)}
    return {} if login.token_file is None else {"token": secret(login.token_file)}


def _tls(settings: NatsSettings) -> dict[str, Any]:
    if not settings.encrypted:
        return {}
    tls = settings.tls
    try:
        context = ssl.create_default_context(cafile=tls.ca)
        if tls.cert is not None:
            context.load_cert_chain(tls.cert, tls.key)
    except (OSError, ssl.SSLError) as error:
        raise GatewayError(f"cannot load the files of nats.tls: {reason(error)}") from None
    return {"tls": context}


def shown(server: str) -> str:
    """A server's address without credentials."""
    parts = urlsplit(server)
    return f"{parts.scheme}://{parts.hostname}:{parts.port or 4222}"
