"""Pure: the settings of the HTTP gateway, and the checks that keep it safe.

It is disabled by default, listens on the loopback address by default, and never listens on another
address without TLS, its own or that of a proxy.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...spec.validation import field_problems, setting

DEFAULT_LISTEN = "127.0.0.1:8377"
MOST_CLIENTS = 1024

_IN_THE_OPEN = (
    "is reachable from other machines, and tokens would be sent unencrypted: set tls_cert and tls_key, "
    "or set behind_proxy = true if only a proxy that terminates TLS can reach it"
)
_HOST = re.compile(r"(?=.{1,255}$)([a-z0-9]([a-z0-9-]{0,62})(\.[a-z0-9-]{1,63})*|\[[0-9a-f:.]+\])(:\d{1,5})?")
_LISTEN = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%]+\]|[^:\[\]]+):(?P<port>\d{1,5})")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a socket is bound."""

    host: str
    """An IP address."""
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """The address in `127.0.0.1:8377`, `localhost:8377` or `[::1]:8377`.

        Raises:
            ValueError: it is not an address; host names other than localhost are ambiguous.
        """
        found = _LISTEN.fullmatch(text.strip())
        if found is None:
            raise ValueError(f"must be ADDRESS:PORT, such as {DEFAULT_LISTEN}")
        host = "127.0.0.1" if found["host"] == "localhost" else found["host"].strip("[]")
        port = int(found["port"])
        try:
            ip = ipaddress.ip_address(host)
        except ValueError:
            raise ValueError(f"must have an IP address or localhost before the port, not {host!r}") from None
        if port > 65_535:
            raise ValueError("must have a port up to 65535")
        return cls(str(ip), port)

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return ipaddress.ip_address(self.host).is_loopback

    @property
    def is_everywhere(self) -> bool:
        """Whether it stands for every address of the machine, and so names none."""
        return ipaddress.ip_address(self.host).is_unspecified

    def __str__(self) -> str:
        return f"{_bracketed(self.host)}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """HTTP over TCP, with the dashboard; in a file, the table alone turns it on."""

    listen: Address = setting(
        Address("127.0.0.1", 8377), "ADDRESS:PORT; without TLS it must be an address of this machine."
    )
    hosts: tuple[str, ...] = setting(
        (),
        "Further names that browsers use, such as status.example.org, with a port if it is unusual.",
    )
    tls_cert: Path | None = setting(None, "A certificate (PEM); in a file, relative to that file.")
    tls_key: Path | None = setting(None, "The certificate's key (PEM); in a file, relative to that file.")
    behind_proxy: bool = setting(
        False, "Whether a proxy terminates TLS and is the only client that can connect."
    )
    read_only: bool = setting(False, "Whether commands are refused, even with a valid token.")
    max_clients: int = setting(
        64, "How many clients may follow the events at the same time.", least=1, most=MOST_CLIENTS
    )

    @property
    def has_tls(self) -> bool:
        """Whether the gateway itself uses TLS."""
        return self.tls_cert is not None and self.tls_key is not None

    @property
    def url(self) -> str:
        """The URL for browsers."""
        if self.behind_proxy and self.hosts:
            return f"https://{self.hosts[0]}/"
        scheme = "https" if self.has_tls else "http"
        if self.hosts and (self.listen.is_everywhere or self.has_tls):
            name = self.hosts[0]
            return f"{scheme}://{name}/" if _has_port(name) else f"{scheme}://{name}:{self.listen.port}/"
        return f"{scheme}://{self.listen}/"

    def objections(self) -> Iterator[tuple[str, str]]:
        """What makes the settings unsafe or invalid, by field."""
        if (self.tls_cert is None) != (self.tls_key is None):
            missing = "tls_key" if self.tls_key is None else "tls_cert"
            yield missing, "is missing: tls_cert and tls_key belong together"
        if not (self.listen.is_loopback or self.has_tls or self.behind_proxy):
            yield "listen", _IN_THE_OPEN
        if self.listen.is_everywhere and not self.hosts:
            yield "hosts", "must list the host names of this machine, because listen is every address"
        for host in self.hosts:
            if _HOST.fullmatch(host.lower()) is None:
                yield "hosts", f"{host[:80]!r} is not a host name"
        yield from ((problem.field, problem.reason) for problem in field_problems(self))

    def allowed_hosts(self, port: int) -> frozenset[str]:
        """The valid `Host` headers; any other is a foreign name that resolves to this address."""
        own = set[str]()
        if not self.listen.is_everywhere:
            own.add(_bracketed(self.listen.host))
        if self.listen.is_loopback:
            own |= {"127.0.0.1", "localhost", "[::1]"}
        # Configured names may be reached through another port, that of a proxy.
        given = {host.lower() for host in self.hosts}
        bare = given | (own if port == (443 if self.has_tls else 80) else set())
        return frozenset(bare | {name if _has_port(name) else f"{name}:{port}" for name in own | given})


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _has_port(name: str) -> bool:
    return re.search(r":\d+$", name) is not None and not name.endswith("]")
