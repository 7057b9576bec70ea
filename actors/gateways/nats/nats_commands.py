"""Orders over NATS: the same closed list as on the control socket, by request and reply.

    rekindle.command.restart   {"target": "worker:tag:0"}
    rekindle.command.pause     {"arguments": {"reason": "deploy", "for_s": 60}, "user": "ada"}
    rekindle.command.workers
    rekindle.command.bundle    {"target": "worker:tag:0", "generation": 3}

The last token is what is asked: the action of an order, or the last word of a path that is looked
at, in the singular if it names one of several. The answer is the body that the control socket would
send; one that refuses says so in the headers that NATS services use, and its body is the problem.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from loguru import logger
from msgspec import Meta

from ..api.audit_trail import Client, answered, claim
from ..api.problems import Refusal, verdict
from ..api.request_bodies import InvalidRequestError, Nothing, decode_body
from ..api.route import Asked, Served
from ..api.routes import ROUTES
from ..operator import Operator
from ..server_identity import Identity
from ..serving.call_pools import LaneFullError, Lanes
from ..serving.json_values import encode
from .nats_link import Link, LinkError, OversizedError

if TYPE_CHECKING:
    from nats.aio.msg import Msg

MOST_REQUESTS = 64
CODE = "Nats-Service-Error-Code"
REASON = "Nats-Service-Error"

_GENERATION = "{generation}"

Key = tuple[str, bool]
"""What is asked, and whether it is asked about somebody."""


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a client sends."""

    target: str = ""
    """A worker's id or a group's name."""
    arguments: dict[str, Any] = {}  # a Struct copies its defaults
    generation: Annotated[int, Meta(ge=1)] | None = None
    """Which of the target's lives, where that is asked about."""
    user: str | None = None
    """Whom the client acts for. Nobody checks it; it is kept with the order."""


def commands(routes: Iterable[Served] = ROUTES) -> Mapping[Key, Served]:
    """What can be asked over NATS."""
    return {(_word(route), "{" in route.path): route for route in routes if _is_answered(route)}


class Answering:
    """Answers requests. Belongs to the gateway's event loop."""

    def __init__(self, operator: Operator, identity: Identity, lanes: Lanes) -> None:
        self._operator = operator
        self._identity = identity
        self._lanes = lanes
        self._commands = commands()
        self._largest = max(served.largest_body for served in self._commands.values())
        self._under_way: set[asyncio.Task[None]] = set()

    async def listen(self, link: Link, subject: str) -> None:
        """Answer what is asked below this subject, as long as the connection lasts."""

        async def hear(message: Msg) -> None:
            self._hear(link, message)

        await link.listen(f"{subject}.*", hear)

    def _hear(self, link: Link, message: Msg) -> None:
        if not message.reply:
            logger.warning("a command over NATS that wants no answer was not carried out")
            return
        task = asyncio.get_running_loop().create_task(self._answer(link, message))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _answer(self, link: Link, message: Msg) -> None:
        word = message.subject.rpartition(".")[2]
        headers: dict[str, str] | None = None
        try:
            if len(self._under_way) > MOST_REQUESTS:
                raise LaneFullError
            body = await self._answered(word, message.data)
        except Exception as error:  # noqa: BLE001  # a request never ends the gateway
            found = verdict(error, f"the command {word[:40]} over NATS")
            body, headers = encode(found.problem), _headers(found)
        with suppress(LinkError, OversizedError):  # the connection is gone; whoever asked will ask again
            await link.reply(message.reply, body, headers)

    async def _answered(self, word: str, data: bytes) -> bytes:
        _check_size(data, self._largest)
        request: Request = decode_body(data, Request)
        served = self._served(word, request.target)
        _check_size(data, served.largest_body)
        arguments, generation = _arguments(served, request), _generation(served, request)
        asked = Asked(self._operator, self._identity, request.target, arguments, generation)
        client = Client(None, claim(request.user), gateway="nats")
        return await self._lanes.run(served.lane, lambda: encode(answered(served, asked, client)))

    def _served(self, word: str, target: str) -> Served:
        served = self._commands.get((word, bool(target)))
        if served is not None:
            served.check(target, self._operator)
            return served
        if (word, not target) in self._commands:
            wanted = "takes no target" if target else "needs a target"
            raise InvalidRequestError(422, "invalid", f"{word} {wanted}")
        known = ", ".join(sorted({each for each, _ in self._commands}))
        raise InvalidRequestError(
            404, "no_such_command", f"there is no command {word[:40]!r}; there is: {known}"
        )


def _check_size(data: bytes, largest: int) -> None:
    if len(data) > largest:
        raise InvalidRequestError(413, "too_large", f"the request is larger than {largest} bytes")


def _is_answered(route: Served) -> bool:
    """Whether its answer is one JSON document."""
    return not route.text and not route.streams


def _word(route: Served) -> str:
    if route.action:
        return route.action
    words = re.findall(r"[^/]+", re.sub(r"/{\w+}", "", route.path))
    word = str(words[-1].removesuffix(".json"))
    return word.removesuffix("s") if _GENERATION in route.path else word


def _arguments(served: Served, request: Request) -> Any:
    kind = served.body if served.query is Nothing else served.query
    return decode_body(msgspec.json.encode(request.arguments), kind)


def _generation(served: Served, request: Request) -> int:
    if (request.generation is None) == (_GENERATION in served.path):
        wanted = "needs a generation" if request.generation is None else "takes no generation"
        raise InvalidRequestError(422, "invalid", f"{_word(served)} {wanted}")
    return request.generation or 0


def _headers(found: Refusal) -> dict[str, str]:
    return {CODE: str(found.status), REASON: found.problem.error}
