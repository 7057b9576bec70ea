"""What a host declares about a listening socket; checked when it is constructed.

The supervisor binds the socket once and hands it to every worker that names it. It stays open while workers
come and go, so connections made meanwhile wait in its backlog.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass

from ...errors import Problem
from ..validation import Policy, check, setting

FIRST_DESCRIPTOR = 3
"""The number of the first socket in a worker, as systemd has it."""

MOST_SOCKETS = 16
"""How many sockets a worker may have."""

UNIX = "unix:"
LONGEST_PATH = 107
"""How many bytes the kernel takes."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,47}")
_INET = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%]+\]|[^:\[\]]+):(?P<port>\d{1,5})")
_MODE = re.compile(r"(0o?)?[0-7]{3}")
_OWNER = re.compile(r"[^\s:/\0]+(:[^\s:/\0]+)?|:[^\s:/\0]+")
_PLACEHOLDER = re.compile(r"\{socket\.([^{}\s]*)\}")


@dataclass(frozen=True, slots=True)
class SocketSpec(Policy):
    """A socket that the supervisor binds and keeps open for the workers that name it."""

    name: str
    listen: str = setting(
        "", 'Where it listens: "127.0.0.1:8000", "[::1]:8000" or "unix:PATH"; in a file, relative to it.'
    )
    _: KW_ONLY
    backlog: int = setting(
        2048, "How many connections may wait until a worker accepts them.", least=1, most=65_535
    )
    mode: str | None = setting(None, 'The permissions of a unix socket, in octal; by default "660".')
    owner: str | None = setting(
        None, 'The owner of a unix socket: "USER", "USER:GROUP" or ":GROUP". Only root may set any user.'
    )
    reuse_port: bool = setting(
        False, "Whether other sockets may be bound to the same port (SO_REUSEPORT); the kernel then chooses."
    )

    def __post_init__(self) -> None:
        check(self, f"socket {self.name!s:.64}")

    def conflicts(self, wrong: Collection[str]) -> Iterator[Problem]:
        """A name or an address that is not valid, and settings that only the other kind of socket has."""
        if "name" not in wrong and not _NAME.fullmatch(self.name):
            yield Problem("name", f"must match {_NAME.pattern}", self.name)
        if "listen" not in wrong and (reason := _address_problem(self.listen)) is not None:
            yield Problem("listen", reason, self.listen)
            return
        if "mode" not in wrong and self.mode is not None and not _MODE.fullmatch(self.mode):
            yield Problem("mode", 'must be three octal digits, such as "660"', self.mode)
        if "owner" not in wrong and self.owner is not None and not _OWNER.fullmatch(self.owner):
            yield Problem("owner", 'must be "USER", "USER:GROUP" or ":GROUP"', self.owner)
        for field in ("mode", "owner") if self.path is None else ("reuse_port",):
            if field not in wrong and getattr(self, field):
                kind = "a unix socket" if self.path is None else "an address with a port"
                yield Problem(field, f"is for {kind} only", getattr(self, field))

    @property
    def path(self) -> str | None:
        """The path of a unix socket."""
        return self.listen.removeprefix(UNIX) if self.listen.startswith(UNIX) else None

    @property
    def address(self) -> tuple[str, int]:
        """The IP address and the port of one that is not a unix socket."""
        host, _, port = self.listen.rpartition(":")
        return "127.0.0.1" if host == "localhost" else host.strip("[]"), int(port)

    @property
    def permissions(self) -> int:
        """The mode of a unix socket as a number."""
        return int((self.mode or "660").replace("o", ""), 8)

    @property
    def takes_any_port(self) -> bool:
        """Whether the kernel chooses the port."""
        return self.path is None and self.address[1] == 0

    @property
    def place(self) -> tuple[str, bool]:
        """What tells two sockets apart: where they are bound."""
        return (self.name if self.takes_any_port else _normal(self.listen)), self.reuse_port


def _normal(listen: str) -> str:
    return listen.replace("localhost:", "127.0.0.1:", 1)


def _address_problem(text: str) -> str | None:
    if text.startswith(UNIX):
        path = text.removeprefix(UNIX)
        if not path or "\0" in path:
            return "must have a path after unix:"
        if len(path.encode()) > LONGEST_PATH:
            return f"has a path of more than {LONGEST_PATH} bytes, which the kernel does not take"
        return None
    found = _INET.fullmatch(text)
    if found is None:
        return 'must be ADDRESS:PORT, such as "127.0.0.1:8000" or "[::1]:8000", or "unix:PATH"'
    host = "127.0.0.1" if found["host"] == "localhost" else found["host"].strip("[]")
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return f"must have an IP address or localhost before the port, not {host!r}"
    return "must have a port up to 65535" if int(found["port"]) > 65_535 else None


def set_problem(sockets: Iterable[SocketSpec]) -> tuple[str, str] | None:
    """Why sockets cannot be open together, with the name of the second of two; None if they can."""
    by_name: dict[str, SocketSpec] = {}
    by_place: dict[str, SocketSpec] = {}
    for each in sockets:
        known = by_name.setdefault(each.name, each)
        if known != each:
            return each.name, "is declared twice, with different settings"
        place, shares = each.place
        other = by_place.setdefault(place, each)
        if other.name != each.name and not (shares and other.reuse_port):
            return each.name, f"listens on {each.listen}, as the socket {other.name!r} does"
    return None


def with_numbers(text: str, sockets: Sequence[SocketSpec]) -> str:
    """A word of a command with `{socket.NAME}` replaced by the number of its descriptor."""
    numbers = {each.name: str(number) for number, each in enumerate(sockets, FIRST_DESCRIPTOR)}
    return _PLACEHOLDER.sub(lambda found: numbers.get(found[1], found[0]), text)


def unknown_names(argv: Iterable[str], sockets: Sequence[SocketSpec]) -> list[str]:
    """The names in `{socket.NAME}` of a command that are not among its sockets."""
    names = {each.name for each in sockets}
    return [name for word in argv for name in _PLACEHOLDER.findall(word) if name not in names]
