"""The secret of a webhook is held to the same rules as every other secret."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rekindle.actors.facts.alert import TOLD, Severity
from rekindle.actors.gateways.gateway_errors import GatewayError
from rekindle.actors.gateways.settings.sink_settings import SinkSettings
from rekindle.cli.supervise.gateways import sink_of


def sink(secret: Path) -> SinkSettings:
    return SinkSettings(
        webhook="https://example.org/",
        secret_file=secret,
        on=TOLD,
        least=Severity.INFO,
        per_minute=1,
        timeout_s=1,
    )


@pytest.mark.parametrize(
    ("text", "mode", "why"), [("x", 0o640, "is readable by other users"), ("\n", 0o600, "is empty")]
)
def test_an_invalid_secret_is_refused(tmp_path: Path, text: str, mode: int, why: str) -> None:
    file = tmp_path / "hook.secret"
    file.write_text(text)
    file.chmod(mode)
    with pytest.raises(GatewayError, match=why):
        sink_of(sink(file))


def test_a_secret_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GatewayError, match="cannot read"):
        sink_of(sink(tmp_path / "missing"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_secret_that_another_user_could_change_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "hook.secret"
    file.write_text("x")
    file.chmod(0o600)
    os.chown(file, 12345, -1)
    with pytest.raises(GatewayError, match="belongs to another user"):
        sink_of(sink(file))
