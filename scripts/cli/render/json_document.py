"""Pure: the JSON that commands print with `--json`: stable names, and times that people can read.

Three rules hold for every document, and a test holds every command to its recorded fields:

- `schema` at the top is the version of these documents. Fields are added without a new version; one that is
  removed, renamed or given another meaning makes a new version, which the changelog announces.
- `id` names what a document is about. A worker has its name as `component_id`, too.
- Beside every `NAME_wall_ms` (milliseconds since 1970) stands `NAME` in ISO 8601, in UTC.

What a user put in (payloads, results and checkpoints of jobs) is printed as it is.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

SCHEMA = 1
OF_USERS = frozenset({"payload", "result", "checkpoint"})
"""Keys below which everything belongs to users."""
_MS = "_wall_ms"
_LATEST_MS = 253_402_300_799_000
"""The end of the year 9999, after which ISO 8601 has no four digits."""


def whole(document: object) -> object:
    """The document of a command, with the version at its top."""
    made = entry(document)
    return {"schema": SCHEMA, **made} if isinstance(made, dict) else made


def entry(document: object) -> object:
    """One entry, such as a line of `--follow --json`."""
    match document:
        case dict():
            return _table(document)
        case list() | tuple():
            return [entry(each) for each in document]
        case _:
            return document


def _table(document: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if "component_id" in document and "id" not in document:
        made["id"] = document["component_id"]
    for name, value in document.items():
        made[name] = value if name in OF_USERS else entry(value)
        plain = str(name).removesuffix(_MS)
        if plain != name and plain not in document:
            made[plain] = _moment(value)
    return made


def _moment(ms: object) -> str | None:
    """A time in ISO 8601; None if there is none."""
    if not isinstance(ms, int) or not 0 <= ms <= _LATEST_MS:
        return None
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
