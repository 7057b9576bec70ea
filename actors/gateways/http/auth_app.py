"""Everyone who comes over TCP comes through here: judged by `admission`, known by token or cookie.

Behind it are the dashboard's files, which everybody may read, the exchange of a token for a
cookie (`/session`), and the routes of the control socket, for those who are known.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any

from loguru import logger
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..api.audit_trail import Client, claim
from ..api.problems import Refusal
from ..api.route import PREFIX
from ..serving.json_values import Problem, encode
from . import login_sessions
from .entry import read_token
from .login_sessions import Role, Session
from .origin_rules import Head, House, objection, unproven
from .static_files import Page
from .tokens import Tokens

EVENTS = f"{PREFIX}/events"
SESSION = "/session"
LEAVE = "/session/end"

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
"""The share of all places at the events that one address may take, unless everyone has the same one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the door goes by."""

    house: House
    tokens: Tokens
    cookie: str
    """What the cookie is called: browsers share cookies among all ports of a host."""
    secure: bool
    read_only: bool
    max_clients: int
    shares_address: bool
    """Whether many clients come from one address: this machine, or a proxy."""


class Door:
    """The application that is served; belongs to one event loop."""

    def __init__(self, api: ASGIApp, pages: Mapping[str, Page], rules: Rules) -> None:
        self._api = api
        self._pages = pages
        self._rules = rules
        self._following: Counter[str] = Counter()
        self._refused = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        head = head_of(scope)
        send = _with_headers(send, no_store=head.path not in self._pages)
        refusal = objection(head, self._rules.house)
        if refusal is not None:
            await _refused(refusal, head)(scope, receive, send)
        elif head.asks_api:
            await self._serve_api(head, scope, receive, send)
        else:
            response = await self._page_or_session(head, scope, receive)
            await response(scope, receive, send)

    # ── the API, for those who are known ─────────────────────────────────────────────────

    async def _serve_api(self, head: Head, scope: Scope, receive: Receive, send: Send) -> None:
        role = self._role(head)
        address = _address(scope)
        if isinstance(role, Refusal):
            await _refused(role, head)(scope, receive, send)
        elif head.path == EVENTS and not self._has_place(address):
            problem = Refusal(503, Problem("busy", "too many follow the events already; try again later"))
            await _refused(problem, head, {"retry-after": "5"})(scope, receive, send)
        else:
            scope["state"] = {**scope.get("state", {}), "client": self._client(head, role, address)}
            await self._follow(head, address, scope, receive, send)

    async def _follow(self, head: Head, address: str, scope: Scope, receive: Receive, send: Send) -> None:
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
        most = self._rules.max_clients
        share = most if self._rules.shares_address else max(1, int(most * _PER_ADDRESS))
        return self._following.total() < most and self._following[address] < share

    def _client(self, head: Head, role: Role, address: str) -> Client:
        said = claim(head.headers.get("x-rekindle-user"))
        who = f"{said} at {address}" if said else address
        may_order = role is Role.OPERATOR and not self._rules.read_only
        return Client(None, who, gateway="http", may_order=may_order)

    # ── who it is ────────────────────────────────────────────────────────────────────────

    def _role(self, head: Head) -> Role | Refusal:
        scheme, _, token = head.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self._rules.tokens.role_of(token.strip()) or self._unknown("the token is not ours")
        session = self._session(head)
        if session is None:
            return self._unknown("show a token; `rekindle dashboard` prints a link with one")
        return unproven(head) or session.role

    def _session(self, head: Head) -> Session | None:
        cookie = _cookies(head.headers.get("cookie", "")).get(self._rules.cookie)
        return (
            None if cookie is None else login_sessions.session_of(cookie, self._rules.tokens.key, time.time())
        )

    def _unknown(self, message: str) -> Refusal:
        return Refusal(401, Problem("unauthorized", message))

    # ── the page, and the exchange of a token for a cookie ───────────────────────────────

    async def _page_or_session(self, head: Head, scope: Scope, receive: Receive) -> Response:
        match head.method, head.path:
            case "GET", path if path in self._pages:
                return self._pages[path].response(head.headers.get("if-none-match"))
            case "GET", "/session":
                return self._tell(head)
            case "POST", "/session":
                return await self._exchange(head, scope, receive)
            case "POST", "/session/end":
                return self._leave()
            case _, path if path in (SESSION, LEAVE) or path in self._pages:
                message = f"{head.method} is not served here"
                return _refused(Refusal(405, Problem("method_not_allowed", message)), head)
            case _:
                return _refused(Refusal(404, Problem("no_such_path", "there is nothing here")), head)

    def _tell(self, head: Head) -> Response:
        session = self._session(head)
        if session is None:
            return self._told(None)  # a page that asks is not refused: it would be noted as an error
        if session.is_to_be_renewed(time.time()):
            return self._welcome(session.role, head)
        return self._told(session.role)

    async def _exchange(self, head: Head, scope: Scope, receive: Receive) -> Response:
        token = await read_token(receive)
        if isinstance(token, Refusal):
            return _refused(token, head)
        role = self._rules.tokens.role_of(token)
        if role is None:
            logger.warning("a wrong token was shown from {}", _address(scope))
            return _refused(self._unknown("the token is not ours"), head)
        return self._welcome(role, head)

    def _welcome(self, role: Role, head: Head) -> Response:
        cookie = login_sessions.issue(role, self._rules.tokens.key, time.time(), secrets.token_urlsafe(16))
        response = self._told(role)
        secure = self._rules.secure or head.headers.get("origin", "").lower().startswith("https:")
        response.set_cookie(
            self._rules.cookie,
            cookie,
            max_age=login_sessions.LIFE_S,
            httponly=True,
            samesite="strict",
            secure=secure,
        )
        return response

    def _told(self, role: Role | None) -> Response:
        can_order = role is Role.OPERATOR and not self._rules.read_only
        return _json(200, {"role": role, "may_order": can_order})

    def _leave(self) -> Response:
        response = self._told(None)
        response.delete_cookie(self._rules.cookie, httponly=True, samesite="strict")
        return response


def head_of(scope: Scope) -> Head:
    """What a request says before its body."""
    headers: dict[str, str] = {}
    repeated: set[str] = set()
    for raw_name, raw_value in scope["headers"]:
        name = raw_name.decode("latin-1").lower()
        if name in headers:
            repeated.add(name)
        headers[name] = raw_value.decode("latin-1")
    return Head(scope["method"], scope["path"], headers, frozenset(repeated))


def _cookies(header: str) -> Mapping[str, str]:
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(header).items()}
    except CookieError:
        return {}


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else "?"


def _with_headers(send: Send, *, no_store: bool) -> Send:
    """Sends with every answer what browsers shall heed."""
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


def _refused(refusal: Refusal, head: Head, headers: Mapping[str, str] | None = None) -> Response:
    response = _json(refusal.status, refusal.problem)
    if head.changes:
        response.headers["connection"] = "close"  # its body may not have been read
    if refusal.status == 401:
        response.headers["www-authenticate"] = "Bearer"
    response.headers.update(headers or {})
    return response


def _json(status: int, body: object) -> Response:
    return Response(encode(body), status, media_type="application/json")
