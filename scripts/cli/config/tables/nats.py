"""Pure but for `~`: the NATS gateway that a file asks for."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from msgspec import UNSET, structs

from rekindle.actors.gateways.gateway_errors import GatewaySettingsError
from rekindle.actors.gateways.settings.nats_settings import Commands, Login, NatsSettings, Tls

from ..paths import absolute
from ..problems import NOTHING, Finding, KeyPath
from ..structs import File, Nats, Table

_PATHS = ("credentials", "password_file", "token_file", "ca", "cert", "key")


def nats_of(file: File, folder: Path, findings: list[Finding]) -> NatsSettings | None:
    """The gateway's settings; None if the file has no `[nats]`, and it stays off."""
    table = file.nats
    if table is UNSET:
        return None
    try:
        return NatsSettings(
            servers=table.servers,
            subject=table.subject,
            system_subject=table.system_subject,
            payload=table.payload,
            jetstream=table.jetstream,
            stream=None if table.stream is UNSET else table.stream,
            most_waiting=table.most_waiting,
            commands=Commands(enabled=table.commands, subject=table.command_subject),
            login=Login(**_given(("nats", "login"), table.login, folder, findings)),
            tls=Tls(**_given(("nats", "tls"), table.tls, folder, findings)),
        )
    except GatewaySettingsError as error:
        findings += (_finding(table, problem.field, problem.reason) for problem in error.problems)
        return None


def nats_table(settings: NatsSettings) -> dict[str, Any]:
    """The table that would lead to these settings."""
    table: dict[str, Any] = {
        "servers": list(settings.servers),
        "subject": settings.subject,
        "system_subject": settings.system_subject,
        "payload": settings.payload.value,
        "jetstream": settings.jetstream,
        "most_waiting": settings.most_waiting,
        "commands": settings.commands.enabled,
        "command_subject": settings.commands.subject,
        "login": _set(settings.login),
        "tls": _set(settings.tls),
    }
    return table if settings.stream is None else {**table, "stream": settings.stream}


def _set(settings: Login | Tls) -> dict[str, Any]:
    return {name: value for name, value in asdict(settings).items() if value is not None}


def _given(here: KeyPath, table: Table, folder: Path, findings: list[Finding]) -> dict[str, Any]:
    given = {name: value for name, value in structs.asdict(table).items() if value is not UNSET}
    for name in _PATHS:
        if name in given:
            try:
                given[name] = str(absolute(given[name], folder))
            except ValueError as error:
                findings.append(Finding((*here, name), str(error), given[name]))
    return given


def _finding(table: Nats, field: str, reason: str) -> Finding:
    key = "command_subject" if field == "commands.subject" else field
    value = getattr(table, key, NOTHING)
    return Finding(("nats", *key.split(".")), reason, NOTHING if isinstance(value, Table) else value)
