"""How tests upgrade a supervisor."""

from __future__ import annotations

from typing import Any

from tests.processes.waiting import PATIENCE_S, eventually
from tests.running.conftest import Running

from rekindle.cli.client import ControlError

UPGRADE_S = 4 * PATIENCE_S
"""An upgrade loads a program twice, and three times if it fails: a busy machine takes long for that."""


def upgraded(running: Running, **more: Any) -> dict[str, Any]:
    """Upgrade the supervisor, and wait for the outcome."""
    number = running.order("upgrade", **more)["detail"]["number"]
    found: dict[str, Any] = {}

    def is_over() -> bool:
        try:
            found.update(running.client.get("/upgrade")["detail"])
        except ControlError:
            return False
        return found["blind_ms"] is not None and found["number"] > number

    assert eventually(is_over, UPGRADE_S), running.text()
    return found
