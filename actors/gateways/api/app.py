"""The application: requests in, answers out, by the table of routes and nothing else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from ...messages.topics import Topics
from ..operator import Operator
from ..server_identity import Identity
from ..serving.call_pools import Lanes
from ..serving.event_hub import MOST_CLIENTS, Hub
from ..serving.json_values import Problem, encode
from ..serving.sse_response import EventStreamResponse, Wish, reader
from .audit_trail import Client, answered, claim
from .problems import Refusal, verdict
from .request_bodies import (
    Following,
    InvalidRequestError,
    Nothing,
    decode_body,
    decode_query,
    generation_of,
    last_event_id,
    topics_of,
)
from .route import Asked, Served
from .routes import ROUTES

Endpoint = Callable[[Request], Awaitable[Response]]


def create_app(
    operator: Operator, identity: Identity, lanes: Lanes, *, most_followers: int = MOST_CLIENTS
) -> Starlette:
    """An application that serves the table of routes for this operator."""
    hub = Hub(operator, most_followers)
    lanes.before_closing.append(hub.close)

    def endpoint(served: Served) -> Endpoint:
        if served.streams:
            return _streaming(served, operator, identity, hub, lanes)
        return _endpoint(served, operator, identity, lanes)

    routes = [_route(served, endpoint(served)) for served in ROUTES]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _no_such_route})
    app.router.redirect_slashes = False
    return app


def _route(served: Served, endpoint: Endpoint) -> Route:
    route = Route(served.url, endpoint, methods=[served.method])
    route.methods = {served.method}  # starlette adds HEAD to GET, and the list of routes is closed
    return route


def _endpoint(served: Served, operator: Operator, identity: Identity, lanes: Lanes) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        try:
            client = _client(request)
            asked = await _decoded(served, request, operator, identity)
            # What the answer looks like is worked out on the thread too, not on the event loop.
            body = await lanes.run(served.lane, lambda: _encoded(served, answered(served, asked, client)))
        except ClientDisconnect:
            return Response()  # to nobody
        except Exception as error:  # noqa: BLE001  # a request never ends the server
            return _refused(verdict(error, f"{served.method} {served.url}"))
        return Response(body, 200, media_type=served.text) if served.text else _json(200, body)

    return endpoint


def _streaming(served: Served, operator: Operator, identity: Identity, hub: Hub, lanes: Lanes) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        try:
            asked = await _decoded(served, request, operator, identity)
            wish = _wish(asked.arguments, request.headers.get("last-event-id"))
            connection = getattr(request.state, "connection", None)
            follower = await hub.join(Topics(wish.topics), _nothing if connection is None else connection.cut)
        except ClientDisconnect:
            return Response()  # to nobody
        except Exception as error:  # noqa: BLE001  # a request never ends the server
            return _refused(verdict(error, f"{served.method} {served.url}"))
        if connection is not None:
            connection.stream()
        return EventStreamResponse(wish, follower, hub, reader(operator.event_log, lanes))

    return endpoint


def _wish(arguments: Following, last_id: str | None) -> Wish:
    resumed = last_event_id(last_id)
    return Wish(topics_of(arguments.topics), arguments.since if resumed is None else resumed)


def _nothing() -> None:
    """Nobody can be cut whose connection is unknown."""


def _encoded(served: Served, answer: object) -> bytes:
    return answer if served.text and isinstance(answer, bytes) else encode(answer)


async def _decoded(served: Served, request: Request, operator: Operator, identity: Identity) -> Asked:
    target, *number = [*request.path_params.values()] or [""]
    served.check(target, operator)
    query = decode_query(request.query_params.multi_items(), served.query)
    body = decode_body(await _body(request, served.largest_body), served.body)
    arguments = body if served.query is Nothing else query
    return Asked(operator, identity, target, arguments, *map(generation_of, number))


async def _body(request: Request, largest: int) -> bytes:
    """The whole body, if it is not too large.

    How long it may take is the connection's business.
    """
    read = bytearray()
    async for chunk in request.stream():
        read += chunk
        if len(read) > largest:
            message = f"the body is larger than {largest} bytes"
            raise InvalidRequestError(413, "too_large", message)
    return bytes(read)


def _client(request: Request) -> Client:
    known = getattr(request.state, "client", None)  # by the gateway that let the request in
    if isinstance(known, Client):
        return known
    return Client(getattr(request.state, "peer", None), claim(request.headers.get("x-rekindle-user")))


async def _no_such_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        message = f"{request.method} is not served here"
        return _json(405, encode(Problem("method_not_allowed", message)), dict(error.headers or {}))
    message = "there is nothing here; GET /api/v1/openapi.json lists what there is"
    return _json(error.status_code, encode(Problem("no_such_path", message)))


def _refused(found: Refusal) -> Response:
    headers = {"connection": "close"} if found.status == 413 else {}
    return _json(found.status, encode(found.problem), headers)


def _json(status: int, body: bytes, headers: dict[str, str] | None = None) -> Response:
    return Response(body, status, headers, media_type="application/json")
