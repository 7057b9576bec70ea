"""The application on TCP: checks the origin (`origin_rules`), then the token or session.

It serves the files of the dashboard without authentication, the exchange of a token for a session
(`/session`), and the routes of the control socket to authenticated clients.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rekindle import __version__

from ..api.audit_trail import Client, claim, reason_of
from ..api.problems import Refusal
from ..api.request_bodies import InvalidRequestError, decode_body
from ..api.route import PREFIX
from ..serving.json_values import ProblemDocument, encode
from ..serving.repeated_log import RepeatedLog
from .login_sessions import ClientRole, Sessions
from .orchestrator_probes import PATHS, OrchestratorProbes
from .origin_rules import OwnHosts, RequestHead, rejection
from .static_files import StaticFile
from .tokens import Tokens

EVENTS = f"{PREFIX}/events"
SESSION = "/session"
LOGOUT = "/session/end"

HEADERS = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; object-src 'none'; require-trusted-types-for 'script'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
NO_STORE = {"cache-control": "no-store"}
VERSION_HEADER = "rekindle-version"
"""In every answer of the API to an authenticated client, which can tell by it whom it has reached."""
_PER_ADDRESS = 0.5
"""The share of all event streams that one address may use, unless all clients share one address."""
LARGEST_HEAD = 16 * 1024
_LARGEST_TOKEN_BODY = 1024
_LARGEST_REFUSED_BODY = 64 * 1024


class TokenBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A token, which the dashboard takes from the fragment of its URL."""

    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthSettings:
    """What the application checks requests against."""

    own_hosts: OwnHosts
    tokens: Tokens
    read_only: bool
    max_clients: int
    shares_address: bool
    """Whether many clients have the same address: this machine, or a proxy."""


class AuthApp:
    """The application; belongs to one event loop."""

    def __init__(
        self,
        api: ASGIApp,
        files: Mapping[str, StaticFile],
        settings: AuthSettings,
        sessions: Sessions,
        probes: OrchestratorProbes,
    ) -> None:
        self._api = api
        self._files = files
        self._settings = settings
        self._following: Counter[str] = Counter()
        self._sessions = sessions
        self._repeated = RepeatedLog()
        self._probes = probes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        head = head_of(scope)
        send = with_headers(send, HEADERS if head.path in self._files else HEADERS | NO_STORE)
        refusal = oversized(scope) or rejection(head, self._settings.own_hosts)
        if head.method == "GET" and head.path in PATHS:
            # Of any host name: an orchestrator uses the address of the container.
            response = await self._probes.response(head.path)
            await response(scope, receive, send)
        elif refusal is not None:
            await drain(head, receive)
            await refused(refusal, head)(scope, receive, send)
        elif head.needs_auth:
            await self._serve_api(head, scope, receive, send)
        else:
            response = await self._file_or_session(head, scope, receive)
            await response(scope, receive, send)

    # ── the API, for authenticated clients ───────────────────────────────────────────────

    async def _serve_api(self, head: RequestHead, scope: Scope, receive: Receive, send: Send) -> None:
        role = self._role(head)
        address = _address(scope)
        if isinstance(role, Refusal):
            await refused(role, head)(scope, receive, send)
        elif head.path == EVENTS and not self._has_place(address):
            problem = Refusal(503, ProblemDocument("busy", "too many event streams; try again later"))
            await refused(problem, head, {"retry-after": "5"})(scope, receive, send)
        else:
            scope["state"] = {**scope.get("state", {}), "client": self._client(head, role, address)}
            send = with_headers(send, {VERSION_HEADER: __version__})
            await self._follow(head, address, scope, receive, send)

    async def _follow(
        self, head: RequestHead, address: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        if head.path != EVENTS:
            await self._api(scope, receive, send)
            return
        self._following[address] += 1
        try:
            await self._api(scope, receive, send)
        finally:
            self._following[address] -= 1
            if not self._following[address]:
                del self._following[address]

    def _has_place(self, address: str) -> bool:
        most = self._settings.max_clients
        share = most if self._settings.shares_address else max(1, int(most * _PER_ADDRESS))
        return self._following.total() < most and self._following[address] < share

    def _client(self, head: RequestHead, role: ClientRole, address: str) -> Client:
        user = claim(head.headers.get("x-rekindle-user"))
        who = f"{user}, {role} token, at {address}" if user else f"{role} token at {address}"
        may_order = role is ClientRole.OPERATOR and not self._settings.read_only
        reason = reason_of(head.headers.get("x-rekindle-reason"))
        return Client(None, who, gateway="http", may_order=may_order, reason=reason)

    # ── authentication ───────────────────────────────────────────────────────────────────

    def _role(self, head: RequestHead) -> ClientRole | Refusal:
        shown = bearer(head)
        if shown is None:
            return unauthorized("a token is required; `rekindle dashboard` prints a link with one")
        role = self._settings.tokens.role_of(shown) or self._sessions.role_of(shown)
        return role or unauthorized("wrong token; `rekindle dashboard` prints a link with a valid one")

    # ── the dashboard, and the exchange of a token for a session ─────────────────────────

    async def _file_or_session(self, head: RequestHead, scope: Scope, receive: Receive) -> Response:
        match head.method, head.path:
            case "GET", path if path in self._files:
                return self._files[path].response(head.headers.get("if-none-match"))
            case "GET", "/session":
                return self._state_of(head)
            case "POST", "/session":
                return await self._exchange(head, scope, receive)
            case "POST", "/session/end":
                return self._log_out(head)
            case _, path if (allowed := self._methods(path)) is not None:
                message = f"{head.method} is not supported for this path"
                problem = Refusal(405, ProblemDocument("method_not_allowed", message))
                return refused(problem, head, {"allow": allowed})
            case _:
                return refused(Refusal(404, ProblemDocument("no_such_path", "no such path")), head)

    def _methods(self, path: str) -> str | None:
        if path in PATHS or path in self._files:
            return "GET"
        return {SESSION: "GET, POST", LOGOUT: "POST"}.get(path)

    def _state_of(self, head: RequestHead) -> Response:
        shown = bearer(head)
        # Without a session this is not a refusal: the browser would log it as an error.
        return self._session_state(None if shown is None else self._sessions.role_of(shown))

    async def _exchange(self, head: RequestHead, scope: Scope, receive: Receive) -> Response:
        token = await _read_token(receive)
        if isinstance(token, Refusal):
            return refused(token, head)
        role = self._settings.tokens.role_of(token)
        if role is None:
            self._repeated.log("login", f"http: login with a wrong token from {_address(scope)}")
            return refused(
                unauthorized("wrong token; `rekindle dashboard` prints a link with a valid one"), head
            )
        return self._session_state(role, self._sessions.begin(role))

    def _session_state(self, role: ClientRole | None, session: str | None = None) -> Response:
        can_order = role is ClientRole.OPERATOR and not self._settings.read_only
        state: dict[str, object] = {"role": role, "may_order": can_order}
        return _json(200, state if session is None else state | {"session": session})

    def _log_out(self, head: RequestHead) -> Response:
        shown = bearer(head)
        if shown is not None:
            self._sessions.end(shown)
        return self._session_state(None)


def unauthorized(message: str) -> Refusal:
    """The refusal of a request without a valid token."""
    return Refusal(401, ProblemDocument("unauthorized", message))


def head_of(scope: Scope) -> RequestHead:
    """Method, path and headers of a request."""
    headers: dict[str, str] = {}
    repeated: set[str] = set()
    for raw_name, raw_value in scope["headers"]:
        name = raw_name.decode("latin-1").lower()
        if name in headers:
            repeated.add(name)
        headers[name] = raw_value.decode("latin-1")
    return RequestHead(scope["method"], scope["path"], headers, frozenset(repeated))


async def _read_token(receive: Receive) -> str | Refusal:
    """The token in a body, or why there is none."""
    read = bytearray()
    more = True
    while more:
        message = await receive()
        read += message.get("body", b"")
        more = message.get("more_body", False)
        if len(read) > _LARGEST_TOKEN_BODY:
            return Refusal(
                413, ProblemDocument("too_large", f"the body is larger than {_LARGEST_TOKEN_BODY} bytes")
            )
    try:
        body: TokenBody = decode_body(bytes(read), TokenBody)
    except InvalidRequestError as error:
        return Refusal(error.status, ProblemDocument(error.error, str(error)))
    return body.token


def bearer(head: RequestHead) -> str | None:
    """The token or session that a request shows."""
    scheme, _, shown = head.headers.get("authorization", "").partition(" ")
    return shown.strip() if scheme.lower() == "bearer" else None


def oversized(scope: Scope) -> Refusal | None:
    """The refusal of a request with too large headers; None for others."""
    # uvicorn's own limit is for a head that is not complete yet; one that arrives at once passes it.
    size = sum(len(name) + len(value) for name, value in scope["headers"])
    if size <= LARGEST_HEAD:
        return None
    return Refusal(
        431, ProblemDocument("too_large", f"the headers of the request are larger than {LARGEST_HEAD} bytes")
    )


async def drain(head: RequestHead, receive: Receive) -> None:
    """Read a body that is refused: if it is unread when the connection closes, the refusal can be lost."""
    read, more = 0, head.changes
    while more and read <= _LARGEST_REFUSED_BODY:
        message = await receive()
        read += len(message.get("body", b""))
        more = message.get("more_body", False)


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else "?"


def with_headers(send: Send, headers: Mapping[str, str]) -> Send:
    """Adds these headers to the response."""
    extra = [(name.encode(), value.encode()) for name, value in headers.items()]

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            given: MutableMapping[str, Any] = dict(message)
            mine = {name for name, _ in extra}
            kept = [pair for pair in message.get("headers", ()) if pair[0].lower() not in mine]
            given["headers"] = [*kept, *extra]
            message = given
        await send(message)

    return sending


def refused(refusal: Refusal, head: RequestHead, headers: Mapping[str, str] | None = None) -> Response:
    """The response for a refusal."""
    response = _json(refusal.status, refusal.problem)
    if head.changes:
        response.headers["connection"] = "close"  # the body may not have been read
    if refusal.status == 401:
        response.headers["www-authenticate"] = "Bearer"
    response.headers.update(headers or {})
    return response


def _json(status: int, body: object) -> Response:
    return Response(encode(body), status, media_type="application/json")
