"""One connection to a NATS server, until it breaks. Coming back is the gateway's business.

nats-py can reconnect by itself, and then keeps what was published meanwhile in a buffer of its
own. Here a broken connection is over: what was not confirmed is published again on the next one,
and nothing piles up anywhere but in the backlog.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from ..settings.nats_settings import NatsSettings
from .nats_message import Message

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

CONFIRM_S = 2.0
"""How long a server may take to say that it has what it was sent."""
CLOSE_S = 0.5
PAUSE_S = 0.01
TOO_LARGE = 10054
"""JetStream's number for a message that its stream never takes."""


class LinkError(Exception):
    """The connection is of no use any more, or there is none; the text says why."""


class RefusedError(Exception):
    """The server is there and does not keep the message; later it may."""


class OversizedError(Exception):
    """The server will never take the message."""


class Link:
    """A connection that has been made."""

    def __init__(self, client: Client, server: str, settings: NatsSettings) -> None:
        self.server = server
        self._client = client
        self._settings = settings
        self._stream = client.jetstream(timeout=CONFIRM_S) if settings.jetstream else None

    async def publish(self, message: Message) -> None:
        """Send a message; whether it arrived is known once it is confirmed."""
        await self._send(
            lambda: self._client.publish(message.subject, message.payload, headers=_headers(message))
        )

    async def confirm(self) -> None:
        """Wait until the server has everything that was published."""
        # nats-py sends its ping past what waits to be sent, and would confirm too much.
        async with _bounded("the server does not answer"):
            pause = 0.0
            while self._client.pending_data_size and not self._client.is_closed:
                await asyncio.sleep(pause)
                pause = PAUSE_S  # the server takes nothing for now
            await self._send(lambda: self._client.flush(timeout=round(CONFIRM_S)))

    async def store(self, message: Message) -> None:
        """Have a stream keep a message.

        Raises:
            RefusedError: no stream takes it, for now.
            OversizedError: no stream ever will.
            LinkError: the connection broke; it may be kept or not.
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
            raise RefusedError(f"no stream hears {message.subject}") from None
        except errors.APIError as error:
            if error.err_code == TOO_LARGE:
                raise OversizedError from None
            raise RefusedError(f"the stream refuses: {error.description or error.code}") from None

    async def ensure_stream(self, subjects: list[str]) -> None:
        """Make the stream if it has a name and is missing.

        Raises:
            RefusedError: it cannot be made.
        """
        from nats.js import api, errors

        name = self._settings.stream
        if self._stream is None or name is None:
            return
        stream = self._stream
        try:
            await self._send(lambda: stream.stream_info(name))
        except errors.NotFoundError:
            await self._make_stream(api.StreamConfig(name=name, subjects=subjects))
        except errors.APIError as error:
            raise RefusedError(f"the stream {name} cannot be seen: {error.description}") from None

    async def _make_stream(self, config: Any) -> None:
        from nats.js import errors

        assert self._stream is not None
        stream = self._stream
        try:
            await self._send(lambda: stream.add_stream(config))
        except errors.APIError as error:
            raise RefusedError(f"the stream {config.name} cannot be made: {error.description}") from None

    async def listen(self, subject: str, hear: Callable[[Msg], Awaitable[None]]) -> None:
        """Hear what is sent to a subject, from now on."""
        await self._send(lambda: self._client.subscribe(subject, cb=hear))

    async def reply(self, subject: str, body: bytes, headers: dict[str, str] | None) -> None:
        """Answer whoever waits at this subject."""
        await self._send(lambda: self._client.publish(subject, body, headers=headers))

    async def close(self) -> None:
        """End the connection, politely if the server is there for it."""
        with suppress(Exception):
            async with asyncio.timeout(CLOSE_S):
                await self._client.close()
        abandon(self._client)

    async def _send(self, call: Callable[[], Awaitable[Any]]) -> None:
        from nats import errors
        from nats.js import errors as of_streams

        try:
            async with _bounded("the server does not answer"):
                await call()
        except errors.MaxPayloadError:
            raise OversizedError from None
        except (of_streams.APIError, of_streams.NoStreamResponseError):
            raise
        except (errors.Error, OSError, RuntimeError, AttributeError) as error:
            # nats-py trips over its own transport once that is gone.
            raise LinkError(reason(error)) from None


@asynccontextmanager
async def _bounded(says: str) -> AsyncIterator[None]:
    """Gives up on what takes too long."""
    try:
        async with asyncio.timeout(CONFIRM_S + 1.0):
            yield
    except TimeoutError:
        raise LinkError(says) from None


def abandon(client: Client) -> None:
    """Close the socket, whatever state the client is in."""
    transport = getattr(client, "_transport", None)
    for name in ("_io_writer", "_bare_io_writer"):
        writer = getattr(transport, name, None)
        if writer is not None:
            writer.transport.abort()
    for name in ("_reading_task", "_ping_interval_task", "_flusher_task"):
        task = getattr(client, name, None)
        if task is not None:
            task.cancel()


def reason(error: BaseException) -> str:
    """What went wrong, in words that hold no secret."""
    if isinstance(error, TimeoutError):
        return "the server does not answer"
    if isinstance(error, ssl.SSLError):
        return f"no encrypted connection: {error.reason or 'it was refused'}"
    if isinstance(error, OSError):
        return error.strerror or str(error) or type(error).__name__
    return (str(error) or type(error).__name__).removeprefix("nats: ")[:200]


def _headers(message: Message) -> dict[str, str] | None:
    return {"Nats-Msg-Id": message.id} if message.id else None
