"""The alerts of a file, and where they are sent. Pure except for `~` and `missing_programs`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from rekindle.actors.gateways.settings.alert_command import argv_problems
from rekindle.actors.gateways.settings.sink_settings import SinkSettings
from rekindle.actors.processes.spawn.preflight import program_problem
from rekindle.actors.spec.policies.alert_policy import AlertPolicy
from rekindle.actors.spec.probe import url_problem

from ..file_tables import Given, arguments
from ..paths import resolved_paths
from ..problems import ConfigFinding, KeyPath

_SIGNED = "sign the messages with secret_file"
_TOKEN = "write it into a file, and name that with secret_file"
_ADDRESS = re.compile(r"[^@\s<>,;\x00-\x1f]+@[^@\s<>,;\x00-\x1f]+")
_SECRETS = {"slack": "the address of the incoming webhook", "pagerduty": "the integration key"}
"""What a service cannot do without."""
RECEIVERS = ("command", "webhook", "slack", "ntfy", "pagerduty", "email")


@dataclass(frozen=True, slots=True)
class AlertSettings:
    """The alerts of a file."""

    policy: AlertPolicy = AlertPolicy()
    sinks: tuple[SinkSettings, ...] = ()


def alerts_of(file: Given, folder: Path, findings: list[ConfigFinding]) -> AlertSettings:
    """The settings; their problems are added to the findings."""
    table = file.get("alerts", {})
    sinks = (_sink(name, sink, folder, findings) for name, sink in table.get("sink", {}).items())
    return AlertSettings(AlertPolicy(**arguments(AlertPolicy, table)), tuple(sinks))


def missing_programs(alerts: AlertSettings) -> Iterator[ConfigFinding]:
    """The commands whose programs this machine does not have."""
    path = os.environ.get("PATH", os.defpath)
    for sink in alerts.sinks:
        if sink.command and "{" not in sink.command[0]:
            problem = program_problem(sink.command[0], path)
            if problem is not None:
                yield ConfigFinding(("alerts", "sink", sink.name, "command"), problem)


def _sink(name: str, sink: Given, folder: Path, findings: list[ConfigFinding]) -> SinkSettings:
    here = ("alerts", "sink", name)
    findings += (ConfigFinding((*here, *key), reason) for key, reason in _problems(sink))
    given = resolved_paths(here, sink, ("secret_file",), folder, findings)
    return SinkSettings(name=name, **given)


def _problems(sink: Given) -> Iterator[tuple[KeyPath, str]]:
    """The problems of a sink: the key, empty for the whole sink, and the reason."""
    kinds = [kind for kind in RECEIVERS if sink.get(kind)]
    if len(kinds) != 1:
        yield (), f"must have one of {', '.join(RECEIVERS)}"
    if "command" in sink:
        yield from ((("command",), problem.reason) for problem in argv_problems(sink["command"]))
        if "secret_file" in sink:
            yield ("secret_file",), "is not for commands"
    if "webhook" in sink and (problem := url_problem(sink["webhook"], _SIGNED)) is not None:
        yield ("webhook",), problem
    yield from _service_problems(sink)


def _service_problems(sink: Given) -> Iterator[tuple[KeyPath, str]]:
    """The problems of a service for messages."""
    for kind, what in _SECRETS.items():
        if sink.get(kind) and "secret_file" not in sink:
            yield (), f"must have a secret_file with {what}"
    for kind in ("ntfy", "pagerduty"):
        if sink.get(kind) and (problem := url_problem(sink[kind], _TOKEN)) is not None:
            yield (kind,), problem
    if sink.get("ntfy") and not urlsplit(sink["ntfy"]).path.strip("/"):
        yield ("ntfy",), "must end with the topic: https://SERVER/TOPIC"
    yield from _mail_problems(sink)


def _mail_problems(sink: Given) -> Iterator[tuple[KeyPath, str]]:
    if not sink.get("email"):
        yield from (((key,), "is for email only") for key in ("sender", "to") if key in sink)
        return
    parts = urlsplit(sink["email"])
    if parts.scheme not in ("smtp", "smtps") or not parts.hostname:
        yield ("email",), "must be smtp://USER@HOST:PORT or smtps://USER@HOST"
    if parts.password is not None:
        yield ("email",), f"must not contain a password: {_TOKEN}"
    if "secret_file" in sink and not parts.username:
        yield ("email",), "must name the user of the password in secret_file: smtp://USER@HOST"
    for key in ("sender", "to"):
        given = sink.get(key) or ()
        addresses = (given,) if isinstance(given, str) else given
        if not addresses or not all(_ADDRESS.fullmatch(each) for each in addresses):
            yield (key,), "must be an e-mail address" if key == "sender" else "must be e-mail addresses"
