"""The pages about one worker, as text. Output of a worker is shown literally."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..client import ControlClient, ControlError, path_of
from ..console.clock import now_ms
from ..render.crash_text import bundle_lines
from ..render.text import printable, printable_lines
from ..render.timeline_lines import failure_line, timeline_lines
from .worker_rows import Row

NAMES = ("timeline", "output", "crash", "alerts")
WORKER_PAGES = NAMES[:-1]
"""The pages about one worker; the alerts are about all."""


def fetch(client: ControlClient, component_id: str) -> dict[str, str]:
    """Fetch the pages about a worker but for its output, which is followed; the texts by page name."""
    return {"timeline": _timeline(client, component_id), "crash": _crash(client, component_id)}


def of_group(name: str, listed: Sequence[Row]) -> dict[str, str]:
    """The pages about a group: the state of each worker."""
    lines = [f"{row.cells[0]}  {row.cells[1]}  {row.cells[-1]}".rstrip() for row in listed]
    return {
        "timeline": "\n".join([f"{printable(name)}: Enter opens and closes the group.", "", *lines]),
        "crash": "Select a worker to see its last crash.",
    }


def _answer(client: ControlClient, component_id: str, *what: str) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = client.get(path_of("workers", component_id, *what), timeout_s=5.0)
    except ControlError as error:
        return {"error": str(error)}
    return answer


def _timeline(client: ControlClient, component_id: str) -> str:
    explained = _answer(client, component_id, "explain")
    lines = printable_lines(explained.get("text") or explained.get("error", "")).splitlines()
    happened = _answer(client, component_id, "timeline")
    if "entries" in happened:
        lines += ["", failure_line(happened), *timeline_lines(happened, newest_first=True)]
    return "\n".join(lines)


def _crash(client: ControlClient, component_id: str) -> str:
    known = _answer(client, component_id, "bundles")
    if "error" in known:
        return printable(known["error"])
    deaths = [each for each in known["bundles"] if each["finding"] != "operator"]
    if not deaths:
        return "The worker has not died."
    bundle = _answer(client, component_id, "bundles", str(deaths[0]["generation"]))
    if "error" in bundle:
        return printable(bundle["error"])
    return "\n".join(bundle_lines(bundle, now_ms(), known["groups"]))
