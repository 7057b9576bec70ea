"""Pure but for `~`: the alerts that a file asks for, and where they are sent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import UNSET

from rekindle.actors.errors import SpecError
from rekindle.actors.facts.alert import Happening, Severity
from rekindle.actors.gateways.settings.placeholders import argv_problems
from rekindle.actors.spec.alert_policy import AlertPolicy

from ..paths import absolute
from ..problems import Finding, KeyPath
from ..structs import Alerts, AlertSink, File


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSettings:
    """One place where alerts are sent; it has either a command or a webhook."""

    command: tuple[str, ...] = ()
    webhook: str = ""
    secret_file: Path | None = None
    on: tuple[Happening, ...]
    least: Severity
    per_minute: int
    timeout_s: float


@dataclass(frozen=True, slots=True)
class AlertSettings:
    """What a file says of alerts."""

    policy: AlertPolicy = AlertPolicy()
    sinks: tuple[SinkSettings, ...] = ()


def alerts_of(file: File, folder: Path, findings: list[Finding]) -> AlertSettings:
    """The settings; what is wrong with them joins the findings."""
    policy = _policy(file.alerts, findings)
    sinks = tuple(_sink(name, sink, folder, findings) for name, sink in file.alerts.sink.items())
    return AlertSettings(policy, sinks)


def _policy(table: Alerts, findings: list[Finding]) -> AlertPolicy:
    try:
        return AlertPolicy(
            enabled=table.enabled,
            settle_s=table.settle_s,
            escalate_after_s=None if table.escalate_after_s == "none" else table.escalate_after_s,
            recent_s=table.recent_s,
        )
    except SpecError as error:
        findings += (Finding(("alerts", problem.field), problem.reason) for problem in error.problems)
        return AlertPolicy()


def _sink(name: str, sink: AlertSink, folder: Path, findings: list[Finding]) -> SinkSettings:
    here = ("alerts", "sink", name)
    findings += (Finding((*here, *key), reason) for key, reason in _problems(sink))
    return SinkSettings(
        command=() if sink.command is UNSET else sink.command,
        webhook="" if sink.webhook is UNSET else sink.webhook,
        secret_file=_secret_file(here, sink, folder, findings),
        on=sink.on,
        least=Severity[sink.least.upper()],
        per_minute=max(1, sink.per_minute),
        timeout_s=sink.timeout_s,
    )


def _problems(sink: AlertSink) -> Iterator[tuple[KeyPath, str]]:
    """What is wrong with a sink: the key, if it is one key's fault, and why."""
    if (sink.command is UNSET) == (sink.webhook is UNSET):
        yield (), "needs either a command or a webhook"
    if sink.command is not UNSET:
        yield from ((("command",), problem.reason) for problem in argv_problems(sink.command))
        if sink.secret_file is not UNSET:
            yield ("secret_file",), "is for webhooks only"
    if sink.webhook is not UNSET and not _is_address(sink.webhook):
        yield ("webhook",), "must be an http:// or https:// address"
    if sink.per_minute < 1:
        yield ("per_minute",), "must be at least 1"
    if not 0 < sink.timeout_s < float("inf"):
        yield ("timeout_s",), "must be above 0"


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def _secret_file(here: KeyPath, sink: AlertSink, folder: Path, findings: list[Finding]) -> Path | None:
    if sink.secret_file is UNSET:
        return None
    try:
        return absolute(sink.secret_file, folder)
    except ValueError as error:
        findings.append(Finding((*here, "secret_file"), str(error), sink.secret_file))
        return None
