"""Pure except for `~`: the gateway of a file that exports traces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rekindle.actors.gateways.gateway_errors import GatewaySettingsError
from rekindle.actors.gateways.settings.otel_settings import OtelSettings

from ..file_tables import Given, arguments, as_table
from ..paths import resolved_paths
from ..problems import NOTHING, ConfigFinding


def otel_of(file: Given, folder: Path, findings: list[ConfigFinding]) -> OtelSettings | None:
    """The gateway's settings; None if the file has no `[otel]`: then it is off."""
    if "otel" not in file:
        return None
    given = resolved_paths(("otel",), file["otel"], ("headers_file",), folder, findings)
    try:
        return OtelSettings(**arguments(OtelSettings, given))
    except GatewaySettingsError as error:
        findings += (
            ConfigFinding(("otel", problem.field), problem.reason, file["otel"].get(problem.field, NOTHING))
            for problem in error.problems
        )
        return None


def otel_table(settings: OtelSettings) -> dict[str, Any]:
    """The table for these settings."""
    return {key: value for key, value in as_table(settings).items() if value is not None}
