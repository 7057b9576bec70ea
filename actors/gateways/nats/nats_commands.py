"""Commands over NATS: the routes of the control socket, by request and reply.

    rekindle.command.restart   {"target": "worker:tag:0"}
    rekindle.command.pause     {"arguments": {"reason": "deploy", "for_s": 60}, "user": "ada"}
    rekindle.command.workers
    rekindle.command.bundle    {"target": "worker:tag:0", "generation": 3}

The last token of the subject names the route: the action of a command, or the last word of the path
of a query, in the singular if the path ends with a parameter. The reply has the body that the control
socket would send; a refusal also has the error headers of NATS services, and its body is the problem.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from ..api.audit_trail import Client, claim, handle
from ..api.problems import Refusal, problem_for
from ..api.request_bodies import LONGEST_NUMBER, InvalidRequestError, Nothing, decode_body
from ..api.route import Request, Route
from ..api.routes import ROUTES
from ..operator import Operator
from ..server_identity import Identity
from ..serving.call_pools import CallPools, PoolFullError
from ..serving.json_values import encode
from ..serving.repeated_log import RepeatedLog
from ..settings.nats_settings import NatsSettings
from .nats_link import Link, LinkError, OversizedError

if TYPE_CHECKING:
    from nats.aio.msg import Msg

MOST_REQUESTS = 64
CODE = "Nats-Service-Error-Code"
REASON = "Nats-Service-Error"

_GENERATION = "{generation}"

Key = tuple[str, bool]
"""The name of the route, and whether it has a target."""


class CommandBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a NATS request."""

    target: str = ""
    """A worker id, or the name of a group or queue."""
    arguments: dict[str, Any] = {}  # a Struct copies its defaults
    generation: Annotated[int, Meta(ge=1, le=10**LONGEST_NUMBER - 1)] | None = None
    """The incarnation of the target, if the route takes one."""
    user: str | None = None
    """The user that the client acts for. It is not verified, and recorded in the audit."""


def commands(routes: Iterable[Route] = ROUTES) -> Mapping[Key, Route]:
    """The routes that are served over NATS."""
    return {(_word(route), "{" in route.path): route for route in routes if _is_served(route)}


class CommandListener:
    """Replies to requests. Belongs to the gateway's event loop."""

    def __init__(
        self, operator: Operator, identity: Identity, pools: CallPools, settings: NatsSettings
    ) -> None:
        self._operator = operator
        self._settings = settings
        self._repeated = RepeatedLog()
        self._identity = identity
        self._pools = pools
        self._commands = commands()
        self._largest = max(route.largest_body for route in self._commands.values())
        self._in_progress: set[asyncio.Task[None]] = set()

    async def listen(self, link: Link, subject: str) -> None:
        """Reply to requests below this subject, as long as the connection lasts."""

        async def receive(message: Msg) -> None:
            self._receive(link, message)

        await link.listen(f"{subject}.*", receive)

    def _receive(self, link: Link, message: Msg) -> None:
        if not message.reply:
            self._repeated.log("", f"nats: command ignored: it has no reply subject: {message.subject}")
            return
        if not self._settings.may_reply_to(message.reply):
            prefix = self._settings.commands.reply_prefix
            self._repeated.log(
                "reply",
                f"nats: command ignored: its reply subject does not begin with {prefix!r}, or is not safe",
            )
            return
        task = asyncio.get_running_loop().create_task(self._reply(link, message))
        self._in_progress.add(task)
        task.add_done_callback(self._in_progress.discard)

    async def _reply(self, link: Link, message: Msg) -> None:
        word = message.subject.rpartition(".")[2]
        headers: dict[str, str] | None = None
        try:
            if len(self._in_progress) > MOST_REQUESTS:
                raise PoolFullError
            body = await self._result(word, message.data)
        except Exception as error:  # noqa: BLE001  # a request never ends the gateway
            found = problem_for(error, f"nats: command {word[:40]}")
            body, headers = encode(found.problem), _headers(found)
        with suppress(LinkError, OversizedError):  # the connection is gone; the client will ask again
            await link.reply(message.reply, body, headers)

    async def _result(self, word: str, data: bytes) -> bytes:
        _check_size(data, self._largest)
        body: CommandBody = decode_body(data, CommandBody)
        route = self._route(word, body.target)
        _check_size(data, route.largest_body)
        arguments, generation = _arguments(route, body), _generation(route, body)
        request = Request(self._operator, self._identity, body.target, arguments, generation)
        client = Client(None, claim(body.user), gateway="nats")
        return await self._pools.run(route.pool, lambda: encode(handle(route, request, client)))

    def _route(self, word: str, target: str) -> Route:
        route = self._commands.get((word, bool(target)))
        if route is not None:
            route.check(target, self._operator)
            return route
        if (word, not target) in self._commands:
            wanted = "does not take a target" if target else "requires a target"
            raise InvalidRequestError(422, "invalid", f"{word} {wanted}")
        known = ", ".join(sorted({each for each, _ in self._commands}))
        raise InvalidRequestError(
            404, "no_such_command", f"unknown command {word[:40]!r}; the commands are: {known}"
        )


def _check_size(data: bytes, largest: int) -> None:
    if len(data) > largest:
        raise InvalidRequestError(413, "too_large", f"the request is larger than {largest} bytes")


def _is_served(route: Route) -> bool:
    """Whether its result is one JSON document."""
    return not route.media_type and not route.streams


def _word(route: Route) -> str:
    if route.action:
        return route.action
    words = re.findall(r"[^/]+", re.sub(r"/{\w+}", "", route.path))
    word = str(words[-1].removesuffix(".json"))
    return word.removesuffix("s") if _GENERATION in route.path else word


def _arguments(route: Route, body: CommandBody) -> Any:
    kind = route.body if route.query is Nothing else route.query
    return decode_body(msgspec.json.encode(body.arguments), kind)


def _generation(route: Route, body: CommandBody) -> int:
    if (body.generation is None) == (_GENERATION in route.path):
        wanted = "requires a generation" if body.generation is None else "does not take a generation"
        raise InvalidRequestError(422, "invalid", f"{_word(route)} {wanted}")
    return body.generation or 0


def _headers(found: Refusal) -> dict[str, str]:
    return {CODE: str(found.status), REASON: found.problem.error}
