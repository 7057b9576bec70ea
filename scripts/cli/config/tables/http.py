"""Pure but for `~`: the HTTP gateway that a file asks for."""

from __future__ import annotations

from pathlib import Path

from msgspec import UNSET, UnsetType

from rekindle.actors.gateways.settings.http_settings import Address, HttpSettings

from ..paths import absolute
from ..problems import Finding
from ..structs import File, Http


def http_of(file: File, folder: Path, findings: list[Finding]) -> HttpSettings | None:
    """The gateway's settings; None if the file has no `[http]`, and it stays off."""
    table = file.http
    if table is UNSET:
        return None
    settings = HttpSettings(
        listen=_address(table, findings),
        hosts=table.hosts,
        tls_cert=_path("tls_cert", table.tls_cert, folder, findings),
        tls_key=_path("tls_key", table.tls_key, folder, findings),
        behind_proxy=table.behind_proxy,
        read_only=table.read_only,
        max_clients=table.max_clients,
    )
    for field, reason in settings.objections():
        findings.append(Finding(("http", field), reason))
    return settings


def _address(table: Http, findings: list[Finding]) -> Address:
    try:
        return Address.parse(table.listen)
    except ValueError as error:
        findings.append(Finding(("http", "listen"), str(error), table.listen))
        return HttpSettings().listen


def _path(name: str, text: str | UnsetType, folder: Path, findings: list[Finding]) -> Path | None:
    if text is UNSET:
        return None
    try:
        return absolute(text, folder)
    except ValueError as error:
        findings.append(Finding(("http", name), str(error), text))
        return folder
