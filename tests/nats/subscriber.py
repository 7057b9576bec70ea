"""A client of a real NATS server, on a thread of its own."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from tests.processes.waiting import eventually

R = TypeVar("R")
PATIENCE_S = 30.0


@dataclass(frozen=True)
class Heard:
    """One message."""

    subject: str
    body: dict[str, Any]
    id: str | None


class Subscriber:
    """Receives a subject, sends requests and reads streams. It reconnects by itself, as clients do."""

    def __init__(self, url: str, subject: str = ">", **options: Any) -> None:
        self.heard: list[Heard] = []
        self._url = url
        self._subject = subject
        self._options = options
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._client = Client()

    def __enter__(self) -> Self:
        self._thread.start()
        self.do(self._connect())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.do(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        self._loop.close()

    def do(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """What a call on the client's own thread returns."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(PATIENCE_S)

    @property
    def streams(self) -> JetStreamContext:
        """JetStream, as this client sees it."""
        return self._client.jetstream()

    def hears(self, condition: Callable[[list[Heard]], object]) -> bool:
        """Whether the received messages come to fulfil a condition."""
        return eventually(lambda: condition(list(self.heard)), PATIENCE_S)

    def of(self, type_: str) -> list[dict[str, Any]]:
        """The received events of one type."""
        return [each.body for each in list(self.heard) if each.body.get("type") == type_]

    def numbers(self) -> list[int]:
        """The numbers of the received events."""
        return [each.body["id"] for each in list(self.heard) if "id" in each.body]

    def publish(self, subject: str, *, reply: str) -> None:
        """Send an empty request whose answer is to go to any subject."""
        self.do(self._client.publish(subject, b"", reply=reply))
        self.do(self._client.flush())

    def ask(self, subject: str, body: object = None) -> Msg:
        """The answer to a request."""
        data = b"" if body is None else json.dumps(body).encode()
        return self.do(self._client.request(subject, data, timeout=20))

    def stored(self, stream: str) -> list[Heard]:
        """All messages that a stream holds."""
        return self.do(self._stored(stream))

    async def _connect(self) -> None:
        async def quiet(error: Exception) -> None:
            return

        settings: dict[str, Any] = {
            "error_cb": quiet,
            "reconnect_time_wait": 0,
            "max_reconnect_attempts": -1,
            **self._options,
        }
        await self._client.connect(self._url, **settings)
        await self._client.subscribe(self._subject, cb=self._hear)
        await self._client.flush()

    async def _hear(self, message: Msg) -> None:
        if not message.subject.startswith(("_INBOX", "$JS")):
            self.heard.append(_heard(message.subject, message.data, message.headers))

    async def _stored(self, stream: str) -> list[Heard]:
        info = await self.streams.stream_info(stream)
        found = []
        for number in range(info.state.first_seq, info.state.last_seq + 1):
            message = await self.streams.get_msg(stream, number)
            assert message.subject is not None
            found.append(_heard(message.subject, message.data or b"", message.headers))
        return found


def _heard(subject: str, data: bytes, headers: Any) -> Heard:
    try:
        body = json.loads(data)
    except ValueError:
        body = {}
    return Heard(subject, body if isinstance(body, dict) else {}, (headers or {}).get("Nats-Msg-Id"))
