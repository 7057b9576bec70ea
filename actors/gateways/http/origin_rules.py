"""Pure: whether a request may come in at all, from what its head says.

A page of another site can make a browser send requests here, and a name that points here can
make it believe that they go there (DNS rebinding). So every request must name us as we are called
(`Host`), and what is not a mere look must come from our own page (`Origin`, `Sec-Fetch-Site`), or
from a program that shows a token and no sign of a browser.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..api.problems import Refusal
from ..serving.json_values import Problem

API = "/api/"
METRICS = "/metrics"
OWN = ("same-origin", "none")
"""`Sec-Fetch-Site` of our own page, and of somebody who typed the address."""


@dataclass(frozen=True, slots=True)
class Head:
    """What a request says before its body; each header once, in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    repeated: frozenset[str] = frozenset()
    """Headers that came more than once."""

    @property
    def changes(self) -> bool:
        """Whether it is more than a look."""
        return self.method != "GET"

    @property
    def asks_api(self) -> bool:
        """Whether it is for those who are known, and not one of the dashboard's files."""
        return self.path.startswith(API) or self.path == METRICS


@dataclass(frozen=True, slots=True)
class House:
    """What we are called, and how we are reached."""

    hosts: frozenset[str]
    schemes: frozenset[str]


def objection(head: Head, house: House) -> Refusal | None:
    """Why a request is turned away before anybody asks who sent it; None if it is not."""
    host = head.headers.get("host", "").lower()
    if host not in house.hosts or "host" in head.repeated:
        return _no(400, "wrong_host", "nobody is called that here; use the address that rekindle printed")
    if not _is_from_here(head, host, house):
        return _no(403, "cross_site", "the request comes from a page of another site")
    if head.changes and _has_body(head) and not _is_json(head):
        return _no(415, "not_json", "the body must be application/json")
    return None


def unproven(head: Head) -> Refusal | None:
    """Why a cookie does not suffice: what changes something must show that our own page sent it."""
    if head.changes and "origin" not in head.headers and head.headers.get("sec-fetch-site") != "same-origin":
        return _no(403, "cross_site", "an order by cookie must say that it comes from our own page")
    return None


def _is_from_here(head: Head, host: str, house: House) -> bool:
    if {"origin", "sec-fetch-site", "cookie"} & head.repeated:
        return False
    origin = head.headers.get("origin")
    if origin is not None and origin.lower() not in {f"{scheme}://{host}" for scheme in house.schemes}:
        return False
    site = head.headers.get("sec-fetch-site")
    if site is None or site in OWN:
        return True
    # A link to the dashboard from elsewhere is fine: there is nothing secret in the page itself.
    return not head.changes and not head.asks_api and _is_navigation(head)


def _is_navigation(head: Head) -> bool:
    return head.headers.get("sec-fetch-mode") == "navigate"


def _has_body(head: Head) -> bool:
    return "transfer-encoding" in head.headers or head.headers.get("content-length", "0") != "0"


def _is_json(head: Head) -> bool:
    kind = head.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json"


def _no(status: int, word: str, message: str) -> Refusal:
    return Refusal(status, Problem(word, message))
