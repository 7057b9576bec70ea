"""Pure: tables as TOML text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from ..problems import KeyPath, dotted


def value_text(value: object) -> str:
    """A value on one line; None is the word "none", as in a file."""
    match value:
        case None:
            return '"none"'
        case bool():
            return "true" if value else "false"
        case str():
            # TOML has the escapes of JSON; in addition DEL must be escaped.
            return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
        case Mapping():
            return "{ " + ", ".join(_pairs(value)) + " }" if value else "{}"
        case list() | tuple():
            return "[" + ", ".join(value_text(each) for each in value) + "]"
        case _:
            return str(value)


def table_text(path: KeyPath, settings: Mapping[str, object]) -> str:
    """A table with its header, a line for each setting."""
    return "\n".join((f"[{'.'.join(_key(part) for part in path)}]", *_pairs(settings))) + "\n"


def settings_text(settings: Mapping[str, object]) -> str:
    """The settings of the top table."""
    return "".join(f"{pair}\n" for pair in _pairs(settings))


def _pairs(settings: Mapping[str, object]) -> Iterable[str]:
    return (f"{_key(key)} = {value_text(value)}" for key, value in settings.items())


def _key(key: str) -> str:
    return dotted((key,)) if len(key) <= 60 and key.isascii() and key.isprintable() else value_text(key)
