"""The pages about one worker: asked for, and made text. What a worker wrote is shown literally."""

from __future__ import annotations

import time
from typing import Any

from ..client import ControlClient, ControlError, path_of
from ..listings import history_lines
from ..words import printable, printable_lines

NAMES = ("timeline", "output", "crash", "alerts")
WORKER_PAGES = NAMES[:-1]
"""The last one is about all workers."""


def asked(client: ControlClient, component_id: str) -> dict[str, str]:
    """The pages about a worker, by their names."""
    return {
        "timeline": _timeline(client, component_id),
        "output": _output(_answer(client, component_id, "output")),
        "crash": _crash(client, component_id),
    }


def _answer(client: ControlClient, component_id: str, *what: str) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = client.get(path_of("workers", component_id, *what), timeout_s=5.0)
    except ControlError as error:
        return {"error": str(error)}
    return answer


def _timeline(client: ControlClient, component_id: str) -> str:
    explained = _answer(client, component_id, "explain")
    deaths = _answer(client, component_id, "history").get("deaths", [])
    lines = printable_lines(explained.get("text") or explained.get("error", "")).splitlines()
    return "\n".join([*lines, "", *(history_lines(deaths, _now_ms()) if deaths else ())])


def _output(answer: dict[str, Any]) -> str:
    lines = answer.get("lines", [])
    return "\n".join(printable(line.expandtabs()) for line in lines) or "It has written nothing."


def _crash(client: ControlClient, component_id: str) -> str:
    deaths = _answer(client, component_id, "history").get("deaths", [])
    return "\n".join(history_lines(deaths[:1], _now_ms())) if deaths else "It has not died."


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
