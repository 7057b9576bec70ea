"""Pure: the errors of the TOML parser in words for someone who writes a configuration."""

from __future__ import annotations

import ast
import re

from ..problems import KeyPath, dotted
from .line_numbers import line_numbers

_TWICE = re.compile(r"Cannot (?:declare|overwrite|mutate).*?(?P<path>\(.*\))")
_WORD = re.compile(r"[A-Za-z_.~$/-][^\s,\]}\"']*")
_OPEN_TABLE = re.compile(r"(?P<key>[A-Za-z0-9_.-]+)\s*=\s*\{[^}]*$")
_KEY = re.compile(r"\s*[A-Za-z0-9_.-]+(?=\s*=)")
_YAML = re.compile(r"[A-Za-z0-9_-]+:(\s.*)?")
_HEADER = re.compile(r"\s*\[\[?\s*(?P<table>[A-Za-z0-9_.\"' -]+?)\s*\]")


def explained(message: str, text: str, line: int, column: int) -> str:
    """The parser's message, or a better one where the mistake is a usual one."""
    lines = text.split("\n")
    written = lines[line - 1] if line <= len(lines) else ""
    twice = _TWICE.match(message)
    if twice is not None:
        return _twice(twice["path"], text) or message
    if message == "Cannot overwrite a value" and (key := _KEY.match(written)) is not None:
        return f"{key[0].strip()} stands twice in its table"
    opened = _OPEN_TABLE.search(written[: max(0, column)])
    if opened is not None and ("key part" in message or "inline table" in message):
        table = next(
            (found["table"] for each in reversed(lines[:line]) if (found := _HEADER.match(each))), ""
        )
        name = f"{table}.{opened['key']}" if table else opened["key"]
        return f"an inline table must stay on one line; write it as a table of its own: [{name}]"
    if language := _language(text):
        example = "rekindle config init FILE writes an example"
        return f"this looks like {language}; Rekindle reads TOML, and {example}"
    word = _WORD.match(written, column - 1)
    if message == "Invalid value" and word is not None:
        return f'text needs quotes: "{word[0]}"'
    if "table declaration" in message and column <= len(written) and not written[column - 1].isascii():
        return f"{written[column - 1]!r} cannot stand in a name without quotes; {NAME_RULE}"
    return message


def _language(text: str) -> str:
    """Another language that the first lines are written in."""
    lines = [line for line in text.split("\n") if line.strip() and not line.startswith("#")]
    if lines and lines[0].lstrip().startswith("{"):
        return "JSON"
    return "YAML" if lines and (lines[0] == "---" or _YAML.fullmatch(lines[0])) else ""


NAME_RULE = "the name of a worker has letters, digits, _ and -, at most 48 of them"


def _twice(path: str, text: str) -> str | None:
    try:
        parts = ast.literal_eval(path)
    except (ValueError, SyntaxError):
        return None
    key: KeyPath = tuple(str(part) for part in parts)
    first = line_numbers(text).get(key)
    return None if first is None else f"[{dotted(key)}] stands twice; the first one is in line {first}"
