"""One connection to a NATS server, until it breaks. The gateway makes the next one.

nats-py can reconnect by itself, but then buffers what is published meanwhile. Here a broken
connection is not used again: unconfirmed messages are published again on the next one, and only
the backlog buffers.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from ..settings.nats_settings import NatsSettings
from .client_internals import abort
from .nats_message import Message

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

CONFIRM_S = 2.0
"""How long a server may take to confirm what it was sent."""
CLOSE_S = 0.5
PAUSE_S = 0.01
TOO_LARGE = 10054
"""JetStream's error code for a message that is too large for the stream."""

NO_REPLY = "the server does not reply"


class LinkError(Exception):
    """The connection is broken, or was not made; the text says why."""


class StreamRefusedError(Exception):
    """The server did not store the message; it may do so later."""


class OversizedError(Exception):
    """The message is too large for the server."""


class Link:
    """An open connection."""

    def __init__(self, client: Client, server: str, settings: NatsSettings) -> None:
        self.server = server
        self._client = client
        self._settings = settings
        self._stream = client.jetstream(timeout=CONFIRM_S) if settings.jetstream else None

    async def publish(self, message: Message) -> None:
        """Send a message; `confirm` tells whether it arrived."""
        await self._send(
            lambda: self._client.publish(message.subject, message.payload, headers=_headers(message))
        )

    async def confirm(self) -> None:
        """Wait until the server has received everything that was published."""
        # nats-py sends its ping before the messages that wait, which would confirm too much.
        async with _bounded():
            pause = 0.0
            while self._client.pending_data_size and not self._client.is_closed:
                await asyncio.sleep(pause)
                pause = PAUSE_S  # the server does not read for now
            await self._send(lambda: self._client.flush(timeout=round(CONFIRM_S)))

    async def store(self, message: Message) -> None:
        """Store a message in a stream.

        Raises:
            RefusedError: no stream stores it for now.
            OversizedError: it is too large for the stream.
            LinkError: the connection broke; the message may be stored or not.
        """
        from nats.js import errors

        assert self._stream is not None
        stream, settings = self._stream, self._settings
        try:
            await self._send(
                lambda: stream.publish(
                    message.subject, message.payload, stream=settings.stream, headers=_headers(message)
                )
            )
        except errors.NoStreamResponseError:
            hint = "" if settings.stream else "; set nats.stream to have one created"
            raise StreamRefusedError(f"no stream has the subject {message.subject}{hint}") from None
        except errors.APIError as error:
            if error.err_code == TOO_LARGE:
                raise OversizedError from None
            raise StreamRefusedError(
                f"the stream refused the message: {error.description or error.code}"
            ) from None

    async def ensure_stream(self, subjects: list[str]) -> None:
        """Create the stream if the settings name one and it is missing.

        Raises:
            RefusedError: it cannot be created.
        """
        from nats.js import api, errors

        name = self._settings.stream
        if self._stream is None or name is None:
            return
        stream = self._stream
        try:
            await self._send(lambda: stream.stream_info(name))
        except errors.NotFoundError:
            await self._create_stream(api.StreamConfig(name=name, subjects=subjects))
        except errors.APIError as error:
            raise StreamRefusedError(f"cannot look up the stream {name}: {error.description}") from None

    async def _create_stream(self, config: Any) -> None:
        from nats.js import errors

        assert self._stream is not None
        stream = self._stream
        try:
            await self._send(lambda: stream.add_stream(config))
        except errors.APIError as error:
            raise StreamRefusedError(f"cannot create the stream {config.name}: {error.description}") from None

    async def listen(self, subject: str, receive: Callable[[Msg], Awaitable[None]]) -> None:
        """Receive the messages of a subject, from now on."""
        await self._send(lambda: self._client.subscribe(subject, cb=receive))

    async def reply(self, subject: str, body: bytes, headers: dict[str, str] | None) -> None:
        """Send a reply."""
        await self._send(lambda: self._client.publish(subject, body, headers=headers))

    async def close(self) -> None:
        """Close the connection; in order if the server responds in time."""
        with suppress(Exception):
            async with asyncio.timeout(CLOSE_S):
                await self._client.close()
        abort(self._client)

    async def _send(self, call: Callable[[], Awaitable[Any]]) -> None:
        from nats import errors
        from nats.js import errors as stream_errors

        try:
            async with _bounded():
                await call()
        except errors.MaxPayloadError:
            raise OversizedError from None
        except (stream_errors.APIError, stream_errors.NoStreamResponseError):
            raise
        except (errors.Error, OSError, RuntimeError, AttributeError) as error:
            # nats-py raises RuntimeError and AttributeError when its transport is gone.
            raise LinkError(reason(error)) from None


@asynccontextmanager
async def _bounded() -> AsyncIterator[None]:
    """Raises a LinkError if the server takes too long."""
    try:
        async with asyncio.timeout(CONFIRM_S + 1.0):
            yield
    except TimeoutError:
        raise LinkError(NO_REPLY) from None


def reason(error: BaseException) -> str:
    """The error in words that contain no secret."""
    if isinstance(error, TimeoutError):
        return NO_REPLY
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason or 'refused'}"
    if isinstance(error, OSError):
        return error.strerror or str(error) or type(error).__name__
    return (str(error) or type(error).__name__).removeprefix("nats: ")[:200]


def _headers(message: Message) -> dict[str, str] | None:
    return {"Nats-Msg-Id": message.id} if message.id else None
