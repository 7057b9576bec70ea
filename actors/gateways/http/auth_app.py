"""The application on TCP: checks the origin (`origin_rules`), then the token or cookie.

It serves the files of the dashboard without authentication, the exchange of a token for a cookie
(`/session`), and the routes of the control socket to authenticated clients.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any

import msgspec
from loguru import logger
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..api.audit_trail import Client, claim
from ..api.problems import Refusal
from ..api.request_bodies import InvalidRequestError, decode_body
from ..api.route import PREFIX
from ..serving.json_values import Problem, encode
from . import login_sessions
from .login_sessions import Role, Session
from .origin_rules import OwnHosts, RequestHead, cookie_rejection, rejection
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
_PER_ADDRESS = 0.5
"""The share of all event streams that one address may use, unless all clients share one address."""
_LARGEST_TOKEN_BODY = 1024


class TokenBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A token, which the dashboard takes from the fragment of its URL."""

    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthSettings:
    """What the application checks requests against."""

    own_hosts: OwnHosts
    tokens: Tokens
    cookie: str
    """The name of the cookie, with the port: browsers share cookies among all ports of a host."""
    secure: bool
    read_only: bool
    max_clients: int
    shares_address: bool
    """Whether many clients have the same address: this machine, or a proxy."""


class AuthApp:
    """The application; belongs to one event loop."""

    def __init__(self, api: ASGIApp, files: Mapping[str, StaticFile], settings: AuthSettings) -> None:
        self._api = api
        self._files = files
        self._settings = settings
        self._following: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        head = head_of(scope)
        send = _with_headers(send, no_store=head.path not in self._files)
        refusal = rejection(head, self._settings.own_hosts)
        if refusal is not None:
            await _refused(refusal, head)(scope, receive, send)
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
            await _refused(role, head)(scope, receive, send)
        elif head.path == EVENTS and not self._has_place(address):
            problem = Refusal(503, Problem("busy", "too many event streams; try again later"))
            await _refused(problem, head, {"retry-after": "5"})(scope, receive, send)
        else:
            scope["state"] = {**scope.get("state", {}), "client": self._client(head, role, address)}
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

    def _client(self, head: RequestHead, role: Role, address: str) -> Client:
        user = claim(head.headers.get("x-rekindle-user"))
        who = f"{user} at {address}" if user else address
        may_order = role is Role.OPERATOR and not self._settings.read_only
        return Client(None, who, gateway="http", may_order=may_order)

    # ── authentication ───────────────────────────────────────────────────────────────────

    def _role(self, head: RequestHead) -> Role | Refusal:
        scheme, _, token = head.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self._settings.tokens.role_of(token.strip()) or _unauthorized(
                "wrong token; `rekindle dashboard` prints a link with a valid one"
            )
        session = self._session(head)
        if session is None:
            return _unauthorized("a token is required; `rekindle dashboard` prints a link with one")
        return cookie_rejection(head) or session.role

    def _session(self, head: RequestHead) -> Session | None:
        cookie = _cookies(head.headers.get("cookie", "")).get(self._settings.cookie)
        return (
            None
            if cookie is None
            else login_sessions.session_of(cookie, self._settings.tokens.key, time.time())
        )

    # ── the dashboard, and the exchange of a token for a cookie ──────────────────────────

    async def _file_or_session(self, head: RequestHead, scope: Scope, receive: Receive) -> Response:
        match head.method, head.path:
            case "GET", path if path in self._files:
                return self._files[path].response(head.headers.get("if-none-match"))
            case "GET", "/session":
                return self._renew(head)
            case "POST", "/session":
                return await self._exchange(head, scope, receive)
            case "POST", "/session/end":
                return self._log_out()
            case _, path if path in (SESSION, LOGOUT) or path in self._files:
                message = f"{head.method} is not supported for this path"
                return _refused(Refusal(405, Problem("method_not_allowed", message)), head)
            case _:
                return _refused(Refusal(404, Problem("no_such_path", "no such path")), head)

    def _renew(self, head: RequestHead) -> Response:
        session = self._session(head)
        if session is None:
            return self._session_state(None)  # not a refusal: the browser would log it as an error
        if session.needs_renewal(time.time()):
            return self._log_in(session.role, head)
        return self._session_state(session.role)

    async def _exchange(self, head: RequestHead, scope: Scope, receive: Receive) -> Response:
        token = await _read_token(receive)
        if isinstance(token, Refusal):
            return _refused(token, head)
        role = self._settings.tokens.role_of(token)
        if role is None:
            logger.warning("http: login with a wrong token from {}", _address(scope))
            return _refused(
                _unauthorized("wrong token; `rekindle dashboard` prints a link with a valid one"), head
            )
        return self._log_in(role, head)

    def _log_in(self, role: Role, head: RequestHead) -> Response:
        cookie = login_sessions.issue(role, self._settings.tokens.key, time.time(), secrets.token_urlsafe(16))
        response = self._session_state(role)
        secure = self._settings.secure or head.headers.get("origin", "").lower().startswith("https:")
        response.set_cookie(
            self._settings.cookie,
            cookie,
            max_age=login_sessions.LIFE_S,
            httponly=True,
            samesite="strict",
            secure=secure,
        )
        return response

    def _session_state(self, role: Role | None) -> Response:
        can_order = role is Role.OPERATOR and not self._settings.read_only
        return _json(200, {"role": role, "may_order": can_order})

    def _log_out(self) -> Response:
        response = self._session_state(None)
        response.delete_cookie(self._settings.cookie, httponly=True, samesite="strict")
        return response


def _unauthorized(message: str) -> Refusal:
    return Refusal(401, Problem("unauthorized", message))


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
            return Refusal(413, Problem("too_large", f"the body is larger than {_LARGEST_TOKEN_BODY} bytes"))
    try:
        body: TokenBody = decode_body(bytes(read), TokenBody)
    except InvalidRequestError as error:
        return Refusal(error.status, Problem(error.error, str(error)))
    return body.token


def _cookies(header: str) -> Mapping[str, str]:
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(header).items()}
    except CookieError:
        return {}


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else "?"


def _with_headers(send: Send, *, no_store: bool) -> Send:
    """Adds the security headers to every response."""
    extra = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
    if no_store:
        extra.append((b"cache-control", b"no-store"))

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            given: MutableMapping[str, Any] = dict(message)
            mine = {name for name, _ in extra}
            kept = [pair for pair in message.get("headers", ()) if pair[0].lower() not in mine]
            given["headers"] = [*kept, *extra]
            message = given
        await send(message)

    return sending


def _refused(refusal: Refusal, head: RequestHead, headers: Mapping[str, str] | None = None) -> Response:
    response = _json(refusal.status, refusal.problem)
    if head.changes:
        response.headers["connection"] = "close"  # the body may not have been read
    if refusal.status == 401:
        response.headers["www-authenticate"] = "Bearer"
    response.headers.update(headers or {})
    return response


def _json(status: int, body: object) -> Response:
    return Response(encode(body), status, media_type="application/json")
