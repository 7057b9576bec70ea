"""Pure except for `~`: the NATS gateway of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rekindle.actors.gateways.gateway_errors import GatewaySettingsError
from rekindle.actors.gateways.settings.nats_settings import Login, NatsCommands, NatsSettings, Tls
from rekindle.actors.spec.validation import settings_of

from ..file_tables import Given, arguments, as_table, is_table, keys_of
from ..paths import resolved_paths
from ..problems import NOTHING, ConfigFinding

_PATHS = ("credentials", "password_file", "token_file", "ca", "cert", "key")


def nats_of(file: Given, folder: Path, findings: list[ConfigFinding]) -> NatsSettings | None:
    """The gateway's settings; None if the file has no `[nats]`: then it is off."""
    if "nats" not in file:
        return None
    table = file["nats"]

    def nested(name: str) -> dict[str, Any]:
        given = resolved_paths(("nats", name), table.get(name, {}), _PATHS, folder, findings)
        return {key: str(value) if key in _PATHS else value for key, value in given.items()}

    values = arguments(NatsSettings, table) | {
        "commands": NatsCommands(**arguments(NatsCommands, table)),
        "login": Login(**nested("login")),
        "tls": Tls(**nested("tls")),
    }
    try:
        return NatsSettings(**values)
    except GatewaySettingsError as error:
        findings += (_finding(table, problem.field, problem.reason) for problem in error.problems)
        return None


def nats_table(settings: NatsSettings) -> dict[str, Any]:
    """The table for these settings."""
    table = as_table(settings) | as_table(settings.commands)
    table |= {"login": _set(as_table(settings.login)), "tls": _set(as_table(settings.tls))}
    return _set(table | {"servers": list(settings.servers), "payload": settings.payload.value})


def _set(table: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if value is not None}


def _finding(table: Given, field: str, reason: str) -> ConfigFinding:
    if field.startswith("commands."):
        field = settings_of(NatsCommands)[field.removeprefix("commands.")].key
    known = keys_of(NatsSettings).get(field)
    value = NOTHING if known is None or is_table(known.hint) else table.get(field, NOTHING)
    return ConfigFinding(("nats", *field.split(".")), reason, value)
