"""Pure except for `~`: the alerts of a file, and where they are sent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rekindle.actors.gateways.settings.placeholders import argv_problems
from rekindle.actors.gateways.settings.sink_settings import SinkSettings
from rekindle.actors.spec.policies.alert_policy import AlertPolicy
from rekindle.actors.spec.probe import url_problem

from ..file_tables import Given, arguments
from ..paths import resolved_paths
from ..problems import Finding, KeyPath

_SIGNED = "sign the messages with secret_file"


@dataclass(frozen=True, slots=True)
class AlertSettings:
    """The alerts of a file."""

    policy: AlertPolicy = AlertPolicy()
    sinks: tuple[SinkSettings, ...] = ()


def alerts_of(file: Given, folder: Path, findings: list[Finding]) -> AlertSettings:
    """The settings; their problems are added to the findings."""
    table = file.get("alerts", {})
    sinks = (_sink(name, sink, folder, findings) for name, sink in table.get("sink", {}).items())
    return AlertSettings(AlertPolicy(**arguments(AlertPolicy, table)), tuple(sinks))


def _sink(name: str, sink: Given, folder: Path, findings: list[Finding]) -> SinkSettings:
    here = ("alerts", "sink", name)
    findings += (Finding((*here, *key), reason) for key, reason in _problems(sink))
    given = resolved_paths(here, sink, ("secret_file",), folder, findings)
    return SinkSettings(name=name, **given)


def _problems(sink: Given) -> Iterator[tuple[KeyPath, str]]:
    """The problems of a sink: the key, empty for the whole sink, and the reason."""
    if ("command" in sink) == ("webhook" in sink):
        yield (), "must have either a command or a webhook"
    if "command" in sink:
        yield from ((("command",), problem.reason) for problem in argv_problems(sink["command"]))
        if "secret_file" in sink:
            yield ("secret_file",), "is for webhooks only"
    if "webhook" in sink and (problem := url_problem(sink["webhook"], _SIGNED)) is not None:
        yield ("webhook",), problem
