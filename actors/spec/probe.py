"""What a probe asks, and which answers count as good; checked when it is constructed.

`HttpProbe`, `TcpProbe` and `CommandProbe` only describe. In the configuration file each is one value
(`http = "http://localhost:8080/health"`) or a table with more settings.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar
from urllib.parse import urlsplit

from ..errors import Problem
from .validation import Policy, check, setting

_ADDRESS = re.compile(r"(?P<host>[^\s:]+|\[[0-9A-Fa-f:.]+\]):(?P<port>[0-9]{1,5})")
_CODES = re.compile(r"(?P<first>[1-5][0-9]{2})(?:-(?P<last>[1-5][0-9]{2}))?")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]{0,4096}")
_OUR_HEADERS = frozenset(("connection", "content-length", "expect", "transfer-encoding", "upgrade"))


@dataclass(frozen=True, slots=True)
class HttpProbe(Policy):
    """A GET request; redirects are not followed: their code is the answer.

    Certificates of https addresses are not verified: the probe asks whether the worker answers, not
    who it is.
    """

    SHORT: ClassVar[str] = "url"
    """The field that a plain value in the configuration file sets."""
    EXAMPLE: ClassVar[str] = "http://localhost:8080/health"

    url: str = setting(description="The address: http://HOST[:PORT]/PATH, or https.")
    codes: tuple[int | str, ...] = setting(
        ("200-399",), 'The status codes that count as success: numbers, and ranges such as "200-399".'
    )
    headers: Mapping[str, str] = setting(
        description="Further headers of the request.", factory=lambda: MappingProxyType({})
    )

    def __post_init__(self) -> None:
        if isinstance(self.headers, Mapping):
            object.__setattr__(self, "headers", MappingProxyType(dict(self.headers)))
        check(self)

    def __str__(self) -> str:
        return f"GET {self.url}"

    def accepts(self, code: int) -> bool:
        """Whether this status code counts as success."""
        return any(first <= code <= last for first, last in map(_range, self.codes))

    def conflicts(self, wrong: Collection[str]) -> Iterator[Problem]:
        """An address that cannot be asked, codes that do not exist, headers that would break the request."""
        if "url" not in wrong and (reason := url_problem(self.url, _WITH_HEADERS)) is not None:
            yield Problem("url", reason, self.url)
        if "codes" not in wrong:
            yield from self._code_problems()
        if "headers" not in wrong:
            yield from self._header_problems()

    def _code_problems(self) -> Iterator[Problem]:
        if not self.codes:
            yield Problem("codes", "must name at least one status code")
        for code in self.codes:
            found = _CODES.fullmatch(str(code))
            if found is None or int(found["last"] or found["first"]) < int(found["first"]):
                reason = f'{code!r:.40} is not a status code from 100 to 599 or a range such as "200-399"'
                yield Problem("codes", reason, self.codes)

    def _header_problems(self) -> Iterator[Problem]:
        for name, value in self.headers.items():
            if not _HEADER.fullmatch(name):
                yield Problem("headers", f"{name!r:.80} is not the name of a header")
            elif name.lower() in _OUR_HEADERS:
                yield Problem("headers", f"{name} is set by Rekindle")
            elif not _HEADER_VALUE.fullmatch(value):
                yield Problem("headers", f"the value of {name} must be one line of Latin-1 text")


@dataclass(frozen=True, slots=True)
class TcpProbe(Policy):
    """A connection that is opened and closed again."""

    SHORT: ClassVar[str] = "address"
    EXAMPLE: ClassVar[str] = "localhost:8080"

    address: str = setting(description='The address: "HOST:PORT".')

    def __str__(self) -> str:
        return f"connection to {self.address}"

    def conflicts(self, wrong: Collection[str]) -> Iterator[Problem]:
        """An address that cannot be connected to."""
        if "address" not in wrong and address(self.address) is None:
            reason = f'must have the form "host:port", such as "{self.EXAMPLE}"'
            if "//" in self.address:
                reason += "; for an address with a scheme use http"
            yield Problem("address", reason, self.address)


@dataclass(frozen=True, slots=True)
class CommandProbe(Policy):
    """A program that exits with 0 while the worker is well; it runs as the worker does, without a shell."""

    SHORT: ClassVar[str] = "argv"
    EXAMPLE: ClassVar[tuple[str, ...]] = ("curl", "-f", "http://localhost:8080/health")

    argv: tuple[str, ...] = setting(
        description="The program and its arguments; never a shell string.", key="command"
    )

    def __str__(self) -> str:
        return self.argv[0]

    def conflicts(self, wrong: Collection[str]) -> Iterator[Problem]:
        """A command without a program."""
        if "argv" in wrong:
            return
        if not self.argv or not self.argv[0]:
            yield Problem("argv", "does not name a program")
        elif any("\0" in word for word in self.argv):
            yield Problem("argv", "contains a NUL character")


Probe = HttpProbe | TcpProbe | CommandProbe

_WITH_HEADERS = 'use headers = { Authorization = "..." }'


def address(text: str) -> tuple[str, int] | None:
    """Host and port; None if the text is not an address."""
    found = _ADDRESS.fullmatch(text)
    if found is None or not 0 < int(found["port"]) < 65536:
        return None
    return found["host"].strip("[]"), int(found["port"])


def url_problem(text: str, instead_of_password: str) -> str | None:
    """Why an address cannot be asked over HTTP; None if it can.

    Args:
        text: the address.
        instead_of_password: what to do if it contains a user or a password.
    """
    if not text.isascii() or not text.isprintable() or " " in text:
        return "must not contain blanks or control characters; write them percent-encoded"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        return f"is not an address: {error}"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "must be an http:// or https:// address"
    if parts.username is not None or parts.password is not None:
        return f"must not contain a user or password: {instead_of_password}"
    return "must have a port above 0" if port == 0 else None


def _range(code: int | str) -> tuple[int, int]:
    first, _, last = str(code).partition("-")
    return int(first), int(last or first)
