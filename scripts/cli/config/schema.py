"""The JSON Schema of the file, made from the structs, for editors that complete and check TOML."""

from __future__ import annotations

from typing import Any

import msgspec

from .layers import MOST_MEMBERS, WORKER_NAME
from .structs import File


def schema() -> dict[str, Any]:
    """The schema, with what the structs alone cannot say."""
    document = msgspec.json.schema(File)
    parts = document["$defs"]
    for part in parts.values():
        # Both come with every struct and tell an editor nothing: no setting is required by itself.
        part.pop("title", None)
        part.pop("required", None)
    for name in ("File", "Defaults", "Worker", "Http", "Alerts", "AlertSink", "Nats"):
        for setting in parts[name]["properties"].values():
            setting.pop("default", None)
    worker = parts["Worker"]
    worker["oneOf"] = [{"required": ["command"]}, {"required": ["python"]}]
    worker["properties"]["count"]["maximum"] = MOST_MEMBERS
    parts["File"]["properties"]["worker"]["propertyNames"] = {"pattern": f"^{WORKER_NAME.pattern}$"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Rekindle configuration",
        **document,
    }
