"""How a connection comes to be: to whom, as whom, and encrypted where that is required."""

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
from .nats_link import Link, LinkError, abandon, reason

if TYPE_CHECKING:
    from nats.aio.client import Client

CONNECT_S = 3.0
"""How long one server may take to let us in."""
NEVER_S = 10**9
NOT_ENCRYPTED = "the server does not encrypt, and tls is required"


async def connect(server: str, settings: NatsSettings, name: str) -> Link:
    """Connect to one server.

    Raises:
        LinkError: it cannot be reached, or does not let us in.
        GatewayError: a file that is needed is missing or unsafe.
    """
    from nats import errors
    from nats.aio.client import Client

    client = Client()
    heard: list[Exception] = []

    async def on_error(error: Exception) -> None:
        heard.append(error)

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
        if settings.encrypted and not _is_encrypted(client):
            raise LinkError(NOT_ENCRYPTED)
    except (errors.Error, OSError, TimeoutError, LinkError, RuntimeError, ValueError) as error:
        abandon(client)
        raise LinkError(reason(heard[0] if heard else error)) from None
    except BaseException:
        abandon(client)
        raise
    return Link(client, server, settings)


def check(settings: NatsSettings) -> None:
    """Refuse settings that cannot work here, before anything is started.

    Raises:
        MissingExtraError: nats-py is not installed, or what .creds files need.
        GatewayError: a file that is needed is missing or unsafe.
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
            # Asked for by nats-py just before it is sent: not to a server that would hear it in the clear.
            if settings.encrypted and not _is_encrypted(client):
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
        raise GatewayError(f"the files of nats.tls cannot be used: {reason(error)}") from None
    return {"tls": context}


def _is_encrypted(client: Client) -> bool:
    transport = getattr(client, "_transport", None)
    writer = getattr(transport, "_io_writer", None)
    return writer is not None and writer.get_extra_info("ssl_object") is not None


def shown(server: str) -> str:
    """A server's address without anything that is nobody's business."""
    parts = urlsplit(server)
    return f"{parts.scheme}://{parts.hostname}:{parts.port or 4222}"
