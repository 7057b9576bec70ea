"""Pure: whether a request is accepted at all, decided by its method, path and headers.

A page of another site can make a browser send requests to this server, and a foreign name that
resolves to this address can make the browser treat them as its own (DNS rebinding). So every request
must carry one of the server's own names (`Host`), and a request that changes something must come
from the dashboard (`Origin`, `Sec-Fetch-Site`) or from a program that sends a token and no browser
headers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..api.problems import Refusal
from ..serving.json_values import ProblemDocument

API = "/api/"
METRICS = "/metrics"
OWN = ("same-origin", "none")
"""`Sec-Fetch-Site` of the dashboard, and of an address that the user typed."""


@dataclass(frozen=True, slots=True)
class RequestHead:
    """Method, path and headers of a request; header names in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    repeated: frozenset[str] = frozenset()
    """Headers that occur more than once."""

    @property
    def changes(self) -> bool:
        """Whether it may change something."""
        return self.method != "GET"

    @property
    def needs_auth(self) -> bool:
        """Whether it needs authentication; the files of the dashboard do not."""
        return self.path.startswith(API) or self.path == METRICS


@dataclass(frozen=True, slots=True)
class OwnHosts:
    """The names of this server, and the schemes of its URLs."""

    hosts: frozenset[str]
    schemes: frozenset[str]


def rejection(head: RequestHead, own: OwnHosts) -> Refusal | None:
    """Why a request is refused before authentication; None if it is not."""
    host = head.headers.get("host", "").lower()
    if host not in own.hosts or "host" in head.repeated:
        return _refusal(400, "wrong_host", "unknown Host header; use the URL printed by rekindle")
    if "authorization" in head.repeated:
        return _refusal(400, "malformed", "more than one Authorization header")
    if not _is_same_site(head, host, own):
        return _refusal(403, "cross_site", "the request comes from another site")
    if head.changes and _has_body(head) and not _is_json(head):
        return _refusal(415, "not_json", "the content type must be application/json")
    return None


def _is_same_site(head: RequestHead, host: str, own: OwnHosts) -> bool:
    if {"origin", "sec-fetch-site"} & head.repeated:
        return False
    origin = head.headers.get("origin")
    if origin is not None and origin.lower() not in {f"{scheme}://{host}" for scheme in own.schemes}:
        return False
    site = head.headers.get("sec-fetch-site")
    if site is None or site in OWN:
        return True
    # A link to the dashboard from another site is allowed: the page itself holds no secret.
    return not head.changes and not head.needs_auth and _is_navigation(head)


def _is_navigation(head: RequestHead) -> bool:
    return head.headers.get("sec-fetch-mode") == "navigate"


def _has_body(head: RequestHead) -> bool:
    return "transfer-encoding" in head.headers or head.headers.get("content-length", "0") != "0"


def _is_json(head: RequestHead) -> bool:
    kind = head.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json"


def _refusal(status: int, word: str, message: str) -> Refusal:
    return Refusal(status, ProblemDocument(word, message))
