"""An application of another protocol behind the tokens of the HTTP gateway: one path, one application a role.

It applies the same rules as the gateway (`origin_rules`), so neither a page of another site nor a
foreign host name that resolves to this address reaches the application.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.types import ASGIApp, Receive, Scope, Send

from ..api.problems import Refusal
from ..serving.json_values import ProblemDocument
from .auth_app import (
    HEADERS,
    NO_STORE,
    bearer,
    drain,
    head_of,
    oversized,
    refused,
    unauthorized,
    with_headers,
)
from .login_sessions import ClientRole
from .origin_rules import OwnHosts, RequestHead, rejection
from .tokens import Tokens


class TokenApp:
    """Passes requests for one path on to the application of the client's role."""

    def __init__(
        self, path: str, apps: Mapping[ClientRole, ASGIApp], own_hosts: OwnHosts, tokens: Tokens
    ) -> None:
        self._path = path
        self._apps = apps
        self._own_hosts = own_hosts
        self._tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        head = head_of(scope)
        send = with_headers(send, HEADERS | NO_STORE)
        found = oversized(scope) or rejection(head, self._own_hosts) or self._app_of(head)
        if isinstance(found, Refusal):
            await drain(head, receive)
            await refused(found, head)(scope, receive, send)
            return
        connection = scope.get("state", {}).get("connection")
        if head.method == "GET" and connection is not None:
            connection.stream()
        await found(scope, receive, send)

    def _app_of(self, head: RequestHead) -> ASGIApp | Refusal:
        if head.path != self._path:
            return Refusal(
                404, ProblemDocument("no_such_path", f"no such path; this server has {self._path} only")
            )
        shown = bearer(head)
        role = None if shown is None else self._tokens.role_of(shown)
        if role is None:
            where = "it is in http-viewer.token or http-operator.token of the state directory"
            return unauthorized(f"a valid token is required; {where}")
        return self._apps[role]
