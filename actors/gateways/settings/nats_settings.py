"""Pure: the settings of the NATS gateway.

Secrets are in files, never here: settings are shown and logged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import urlsplit

from ...errors import Problem
from ...spec.validation import convert_words, field_problems, setting
from ..gateway_errors import GatewaySettingsError
from .subjects import Template, matches, prefix_problem, reply_problem, template_problem

DEFAULT_SERVER = "nats://127.0.0.1:4222"
WORKER_SUBJECT = "rekindle.worker.{type}.{id}.{event}"
SYSTEM_SUBJECT = "rekindle.system.{event}"
COMMAND_SUBJECT = "rekindle.command"
REPLY_PREFIX = "_INBOX"
"""What the reply subjects of every NATS client begin with, unless it sets another."""
MOST_WAITING = 1000

_STREAM = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SCHEMES = ("nats", "tls")


class Payload(StrEnum):
    """The format of messages."""

    AUTO = "auto"
    """`plugin` if the subject contains {name}, otherwise `event`."""
    EVENT = "event"
    """The complete event."""
    PLUGIN = "plugin"
    """A death as plugin hosts expect it: plugin, pid, exit_code, timestamp, restart_attempts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """How to authenticate: at most one way; secrets are in files that only their owner can read."""

    credentials: str | None = setting(None, "The path of a .creds file.")
    user: str | None = setting(None, "A user name; the password comes from password_file.")
    password_file: str | None = setting(None, "The path of a file with the password.")
    token_file: str | None = setting(None, "The path of a file with a token.")

    def problems(self) -> Iterator[Problem]:
        """The problems, if there are any."""
        if (self.user is None) is not (self.password_file is None):
            missing = "user" if self.user is None else "password_file"
            yield Problem(missing, "is missing: user and password_file belong together")
        ways = [self.credentials, self.user or self.password_file, self.token_file]
        if sum(way is not None for way in ways) > 1:
            yield Problem("", "must have only one of credentials, user with password_file, and token_file")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """How the connection is encrypted, and how each side is authenticated."""

    required: bool = setting(False, "Whether a server without encryption is refused; ca and cert imply it.")
    ca: str | None = setting(None, "The path of the authorities to trust (PEM) instead of the system's.")
    cert: str | None = setting(None, "The path of the client certificate (PEM).")
    key: str | None = setting(None, "The path of the key of the client certificate (PEM).")

    def problems(self) -> Iterator[Problem]:
        """The problems, if there are any."""
        if (self.cert is None) is not (self.key is None):
            missing = "cert" if self.cert is None else "key"
            yield Problem(missing, "is missing: cert and key belong together")


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsCommands:
    """Whether commands are accepted over NATS, and on which subject."""

    enabled: bool = setting(
        False, "Whether commands are accepted over NATS, as on the control socket.", key="commands"
    )
    subject: str = setting(COMMAND_SUBJECT, "The prefix of the command subjects.", key="command_subject")
    reply_prefix: str = setting(
        REPLY_PREFIX, "Replies are sent only to subjects that begin with this.", key="reply_prefix"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsSettings:
    """Every event, published to NATS; in a file, the table alone turns it on."""

    servers: tuple[str, ...] = setting((DEFAULT_SERVER,), "nats://HOST:PORT, tried in turn.")
    subject: str = setting(
        WORKER_SUBJECT, "The subject of worker events, with {type}, {id}, {name}, {component} and {event}."
    )
    system_subject: str = setting(SYSTEM_SUBJECT, "The subject of all other events, with {event}.")
    payload: Payload = setting(
        Payload.AUTO, "The whole event, or a crash in the format of plugin hosts; auto: depends on {name}."
    )
    jetstream: bool = setting(
        False, "Whether a stream persists every event, so that none is lost in an outage."
    )
    stream: str | None = setting(
        None, "The stream, created if it is missing; without it a stream must cover the subjects already."
    )
    most_waiting: int = setting(
        MOST_WAITING,
        "Without JetStream: how many events wait in memory while no server is reachable.",
        least=1,
    )
    login: Login = setting(factory=Login)
    tls: Tls = setting(factory=Tls)
    commands: NatsCommands = field(default_factory=NatsCommands)

    def __post_init__(self) -> None:
        convert_words(self)
        problems = list(field_problems(self)) or list(self._problems())
        if problems:
            raise GatewaySettingsError("nats", problems)

    def _problems(self) -> Iterator[Problem]:
        if not self.servers:
            yield Problem("servers", "must list at least one server")
        for server in self.servers:
            if (reason := server_problem(server)) is not None:
                yield Problem("servers", reason)
        if (reason := template_problem(self.subject, of_worker=True)) is not None:
            yield Problem("subject", reason)
        if (reason := template_problem(self.system_subject, of_worker=False)) is not None:
            yield Problem("system_subject", reason)
        if self.stream is not None and _STREAM.fullmatch(self.stream) is None:
            yield Problem("stream", f"must match {_STREAM.pattern}")
        if self.stream is not None and not self.jetstream:
            yield Problem("stream", "requires jetstream = true")
        if (reason := prefix_problem(self.commands.subject)) is not None:
            yield Problem("commands.subject", reason)
        if (reason := prefix_problem(self.commands.reply_prefix)) is not None:
            yield Problem("commands.reply_prefix", reason)
        yield from _within("login", self.login.problems())
        yield from _within("tls", self.tls.problems())

    @property
    def encrypted(self) -> bool:
        """Whether a connection must be encrypted."""
        tls = self.tls
        return (
            tls.required or bool(tls.ca or tls.cert) or any(urlsplit(s).scheme == "tls" for s in self.servers)
        )

    def may_reply_to(self, subject: str) -> bool:
        """Whether a reply may be sent to a subject that a client chose.

        It is published with Rekindle's own permissions, which may include the server's API and subjects
        that other programs obey. So it must be an inbox and none of the subjects that Rekindle uses.
        """
        if reply_problem(subject) is not None or not subject.startswith(self.commands.reply_prefix):
            return False
        own = (Template(self.subject).pattern, Template(self.system_subject).pattern)
        below = (self.commands.subject, f"{self.commands.subject}.>")
        return not any(matches(pattern, subject) for pattern in (*own, *below))

    @property
    def shape(self) -> Payload:
        """The format of messages, with `auto` resolved."""
        if self.payload is not Payload.AUTO:
            return self.payload
        return Payload.PLUGIN if Template(self.subject).has_name else Payload.EVENT


def server_problem(address: str) -> str | None:
    """Why the address of a server is invalid; None if it is valid."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        return f"is not an address: {error}"
    if parts.scheme not in _SCHEMES:
        return "must begin with nats:// or tls://"
    if parts.username is not None or parts.password is not None:
        return "must not contain a user or password: set nats.login, with the password in a file"
    if not parts.hostname or parts.path not in ("", "/") or parts.query or parts.fragment:
        return "must be nats://HOST or nats://HOST:PORT"
    return "must have a port above 0" if port == 0 else None


def _within(table: str, problems: Iterator[Problem]) -> Iterator[Problem]:
    for problem in problems:
        yield Problem(f"{table}.{problem.field}".rstrip("."), problem.reason)
