"""Pure: events as lines of text, in the words that the supervisor sends with them."""

from __future__ import annotations

import time
from typing import Any

from .text import printable

Document = dict[str, Any]

_SKIPPED = ("id", "schema_version", "at_wall_ms", "type", "component_id")


def event_line(event: Document) -> str:
    """One event: when, its number, which worker, what."""
    at = event["at_wall_ms"]
    moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at / 1000))
    worker = event.get("component_id") or "rekindle"
    text = event.get("text") or _fields(event)
    return printable(f"{moment}.{at % 1000:03d}  #{event['id']}  {worker}  {text}")


def _fields(event: Document) -> str:
    """An event from an older supervisor, which sends no text."""
    rest = " ".join(f"{name}={value}" for name, value in event.items() if name not in _SKIPPED)
    name = event["type"].replace("_", " ")
    return f"{name}: {rest}" if rest else str(name)
