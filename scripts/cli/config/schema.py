"""The JSON Schema of the file, derived from its tables, for editors that complete and check TOML."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import UnionType
from typing import Any, Union, get_args, get_origin

from rekindle.actors.spec.validation import Bounds, Setting, words

from .file_tables import WORKER_NAME, File, is_table, keys_of, short_key

_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}


def schema() -> dict[str, Any]:
    """The schema of the whole file."""
    tables: dict[str, Any] = {}
    document = _table(File, "File", tables)
    tables["Worker"]["oneOf"] = [{"required": ["command"]}, {"required": ["python"]}]
    tables["Worker"]["properties"]["command"]["minItems"] = 1
    tables["File"]["properties"]["worker"]["propertyNames"] = {"pattern": f"^{WORKER_NAME.pattern}$"}
    tables["File"]["properties"]["group"]["propertyNames"] = {"pattern": f"^{WORKER_NAME.pattern}$"}
    tables["Group"] |= {"required": ["members"]}
    tables["Group"]["properties"]["members"]["minItems"] = 1
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Rekindle configuration",
        **document,
        "$defs": tables,
    }


def _table(kind: type, name: str, tables: dict[str, Any]) -> dict[str, Any]:
    """A reference to a table; the table and its nested tables are added to `tables`."""
    if name not in tables:
        tables[name] = {}  # before its nested tables
        keys = {key: _key(key, each, tables) for key, each in keys_of(kind).items()}
        tables[name] = {
            "type": "object",
            "description": inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0],
            "properties": keys,
            "additionalProperties": False,
        }
    return {"$ref": f"#/$defs/{name}"}


def _key(key: str, declared: Setting, tables: dict[str, Any]) -> dict[str, Any]:
    described = {"description": declared.description} if declared.description else {}
    return {**_value(key, declared.hint, tables), **_bounds(declared.bounds), **described}


def _value(key: str, hint: Any, tables: dict[str, Any]) -> dict[str, Any]:
    origin, parts = get_origin(hint), get_args(hint)
    if (short := short_key(hint)) is not None:
        whole = _table(hint, hint.__name__, tables)
        tables[hint.__name__]["required"] = [short.key]
        return {"anyOf": [_value(key, short.hint, tables), whole]}
    if is_table(hint):
        return _table(hint, key.capitalize(), tables)
    if origin is Mapping:
        return {"type": "object", "additionalProperties": _value(key.removesuffix("s"), parts[1], tables)}
    if origin is tuple:
        return {"type": "array", "items": _value(key, parts[0], tables)}
    if origin in (Union, UnionType) and not all(words(part) for part in parts):
        # In a schema the word "none" is a string like any other.
        kinds = [part for part in parts if str not in parts or not words(part)]
        either = [_value(key, part, tables) for part in kinds]
        return either[0] if len(either) == 1 else {"anyOf": either}
    if hint is object:
        return {}
    return {"enum": list(words(hint))} if words(hint) else {"type": _TYPES[hint]}


def _bounds(bounds: Bounds) -> dict[str, float]:
    named = {"minimum": bounds.least, "exclusiveMinimum": bounds.above, "maximum": bounds.most}
    return {name: bound for name, bound in named.items() if bound is not None}
