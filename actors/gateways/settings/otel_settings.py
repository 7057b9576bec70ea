"""Pure: the settings of the gateway that exports traces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from ...errors import Problem
from ...spec.validation import field_problems, setting
from ..gateway_errors import GatewaySettingsError

DEFAULT_ENDPOINT = "http://127.0.0.1:4318/v1/traces"


@dataclass(frozen=True, slots=True, kw_only=True)
class OtelSettings:
    """A span for each life of a worker and for each job, sent to a collector of OpenTelemetry."""

    endpoint: str = setting(
        DEFAULT_ENDPOINT, "Where a collector takes traces over OTLP/HTTP: the whole address, with its path."
    )
    headers_file: Path | None = setting(
        None,
        "A file with headers of each request, NAME: VALUE on each line, such as the key of a service; in a "
        "file, relative to that file.",
    )
    service: str = setting("rekindle", "The name of the service in the traces (service.name).")
    sample: float = setting(
        1.0,
        "Which share of the traces that begin here is sent, from 0 to 1; lives that end in a death are "
        "always sent, and jobs that belong to a trace follow it.",
        least=0,
        most=1,
    )
    timeout_s: float = setting(10.0, "How long one request may take, with its retries, in seconds.", above=0)
    most_waiting: int = setting(
        10_000, "How many events wait while the collector is slow; more are dropped and counted.", least=1
    )

    def __post_init__(self) -> None:
        problems = list(field_problems(self)) or list(self._problems())
        if problems:
            raise GatewaySettingsError("otel", problems)

    def _problems(self) -> Iterator[Problem]:
        if (reason := endpoint_problem(self.endpoint)) is not None:
            yield Problem("endpoint", reason)
        elif self.headers_file is not None and not _is_private(self.endpoint):
            yield Problem(
                "headers_file",
                "would be sent to the endpoint unencrypted: use an https:// endpoint, or a collector or "
                f"tunnel on this machine, such as {DEFAULT_ENDPOINT}",
            )
        if not self.service.strip():
            yield Problem("service", "must not be empty")


def endpoint_problem(address: str) -> str | None:
    """Why the address of a collector is invalid; None if it is valid."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        return f"is not an address: {error}"
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        return f"must be an http:// or https:// address such as {DEFAULT_ENDPOINT}"
    if parts.username is not None or parts.password is not None:
        return "must not contain a user or password: put a header into headers_file"
    if parts.query or parts.fragment:
        return "must not contain a query or fragment, which logs and viewers see: put a key into headers_file"
    if parts.path in ("", "/"):
        return f"must have the path of traces, as in {DEFAULT_ENDPOINT}"
    return None


def _is_private(address: str) -> bool:
    """Whether only this machine and the collector can read what is sent to a valid address."""
    parts = urlsplit(address)
    if parts.scheme == "https" or parts.hostname == "localhost":
        return True
    try:
        return ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return False


def headers_of(text: str) -> dict[str, str]:
    """The headers in a file: NAME: VALUE on each line.

    Raises:
        ValueError: a line is not a header. The message quotes no value.
    """
    headers: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        name, colon, value = line.partition(":")
        name, value = name.strip(), value.strip()
        if not colon or not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
            raise ValueError(f"line {number} must be a header, written as NAME: VALUE")
        if not (value.isascii() and value.isprintable()):
            raise ValueError(f"line {number} has characters that a header cannot have")
        headers[name] = value
    return headers
