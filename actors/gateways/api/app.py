"""The application: serves the table of routes and nothing else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute

from ...messages.topics import Topics
from ..operator import Operator
from ..server_identity import Identity
from ..serving.call_pools import CallPools
from ..serving.event_hub import MOST_CLIENTS, EventHub
from ..serving.json_values import ProblemDocument, encode
from ..serving.sse_response import EventStreamResponse, StreamRequest, page_reader
from .audit_trail import Client, claim, handle, reason_of
from .problems import Refusal, problem_for
from .request_bodies import (
    EventStreamQuery,
    InvalidRequestError,
    Nothing,
    decode_body,
    decode_query,
    generation_of,
    last_event_id,
    topics_of,
)
from .route import Request, Route
from .routes import ROUTES

Endpoint = Callable[[HttpRequest], Awaitable[Response]]


def create_app(
    operator: Operator, identity: Identity, pools: CallPools, *, most_followers: int = MOST_CLIENTS
) -> Starlette:
    """An application that serves the table of routes for this operator."""
    hub = EventHub(operator, most_followers)
    pools.before_closing.append(hub.close)

    def endpoint(route: Route) -> Endpoint:
        if route.streams:
            return _stream_endpoint(route, operator, identity, hub, pools)
        return _endpoint(route, operator, identity, pools)

    app = Starlette(
        routes=[_starlette_route(route, endpoint(route)) for route in ROUTES],
        exception_handlers={HTTPException: _no_such_route},
    )
    app.router.redirect_slashes = False
    return app


def _starlette_route(route: Route, endpoint: Endpoint) -> StarletteRoute:
    made = StarletteRoute(route.url, endpoint, methods=[route.method])
    made.methods = {route.method}  # starlette adds HEAD to GET, and the list of routes is closed
    return made


def _endpoint(route: Route, operator: Operator, identity: Identity, pools: CallPools) -> Endpoint:
    async def endpoint(http: HttpRequest) -> Response:
        try:
            client = _client(http)
            request = await _decoded(route, http, operator, identity)
            # The response is encoded on the pool's thread too, not on the event loop.
            body = await pools.run(route.pool, lambda: _encoded(route, handle(route, request, client)))
        except ClientDisconnect:
            return Response()  # not sent
        except Exception as error:  # noqa: BLE001  # a request never ends the server
            return _refused(problem_for(error, f"http: {route.method} {route.url}"))
        return Response(body, 200, media_type=route.media_type) if route.media_type else _json(200, body)

    return endpoint


def _stream_endpoint(
    route: Route, operator: Operator, identity: Identity, hub: EventHub, pools: CallPools
) -> Endpoint:
    async def endpoint(http: HttpRequest) -> Response:
        try:
            request = await _decoded(route, http, operator, identity)
            wanted = _stream_request(request.arguments, http.headers.get("last-event-id"))
            connection = getattr(http.state, "connection", None)
            follower = await hub.join(
                Topics(wanted.topics), _nothing if connection is None else connection.cut
            )
        except ClientDisconnect:
            return Response()  # not sent
        except Exception as error:  # noqa: BLE001  # a request never ends the server
            return _refused(problem_for(error, f"http: {route.method} {route.url}"))
        if connection is not None:
            connection.stream()
        return EventStreamResponse(wanted, follower, hub, page_reader(operator.event_log, pools))

    return endpoint


def _stream_request(arguments: EventStreamQuery, last_id: str | None) -> StreamRequest:
    resumed = last_event_id(last_id)
    return StreamRequest(topics_of(arguments.topics), arguments.since if resumed is None else resumed)


def _nothing() -> None:
    """Without a connection of our own server there is nothing to cut."""


def _encoded(route: Route, result: object) -> bytes:
    return result if route.media_type and isinstance(result, bytes) else encode(result)


async def _decoded(route: Route, http: HttpRequest, operator: Operator, identity: Identity) -> Request:
    target, *number = [*http.path_params.values()] or [""]
    route.check(target, operator)
    query = decode_query(http.query_params.multi_items(), route.query)
    body = decode_body(await _body(http, route.largest_body), route.body)
    arguments = body if route.query is Nothing else query
    return Request(operator, identity, target, arguments, *map(generation_of, number))


async def _body(http: HttpRequest, largest: int) -> bytes:
    """The whole body, if it is not too large. The connection bounds how long it may take."""
    read = bytearray()
    async for chunk in http.stream():
        read += chunk
        if len(read) > largest:
            raise InvalidRequestError(413, "too_large", f"the body is larger than {largest} bytes")
    return bytes(read)


def _client(http: HttpRequest) -> Client:
    known = getattr(http.state, "client", None)  # set by the gateway that authenticated the request
    if isinstance(known, Client):
        return known
    user, reason = http.headers.get("x-rekindle-user"), http.headers.get("x-rekindle-reason")
    return Client(getattr(http.state, "peer", None), claim(user), reason=reason_of(reason))


async def _no_such_route(http: HttpRequest, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        message = f"{http.method} is not supported for this path"
        headers = {"allow": ", ".join(_methods(http))}
        return _json(405, encode(ProblemDocument("method_not_allowed", message)), headers)
    message = "no such path; GET /api/v1/openapi.json lists the routes"
    return _json(error.status_code, encode(ProblemDocument("no_such_path", message)))


def _methods(http: HttpRequest) -> list[str]:
    """The methods of all routes with the path of a request."""
    routes = [each for each in http.app.routes if each.path_regex.match(http.scope["path"])]
    return sorted({method for each in routes for method in each.methods})


def _refused(found: Refusal) -> Response:
    headers = {"connection": "close"} if found.status == 413 else {}
    return _json(found.status, encode(found.problem), headers)


def _json(status: int, body: bytes, headers: dict[str, str] | None = None) -> Response:
    return Response(body, status, headers, media_type="application/json")
