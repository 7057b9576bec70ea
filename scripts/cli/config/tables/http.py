"""Pure except for `~`: the HTTP gateway of a file."""

from __future__ import annotations

from pathlib import Path

from rekindle.actors.gateways.settings.http_settings import Address, HttpSettings

from ..file_tables import Given, arguments
from ..paths import resolved_paths
from ..problems import ConfigFinding


def http_of(file: Given, folder: Path, findings: list[ConfigFinding]) -> HttpSettings | None:
    """The gateway's settings; None if the file has no `[http]`: then it is off."""
    if "http" not in file:
        return None
    given = resolved_paths(("http",), file["http"], ("tls_cert", "tls_key"), folder, findings)
    values = arguments(HttpSettings, given)
    if "listen" in values:
        values["listen"] = _address(values["listen"], findings)
    settings = HttpSettings(**values)
    findings += (ConfigFinding(("http", field), reason) for field, reason in settings.objections())
    return settings


def _address(text: str, findings: list[ConfigFinding]) -> Address:
    try:
        return Address.parse(text)
    except ValueError as error:
        findings.append(ConfigFinding(("http", "listen"), str(error), text))
        return HttpSettings().listen
