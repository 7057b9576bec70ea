"""Pure: the line numbers of the keys in a TOML text.

`tomllib` does not provide positions. This scanner knows just enough TOML to find `[table]` headers
and `key =` at the start of a line; it skips comments and the contents of strings and arrays. Keys
in an inline table have the line of the table.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping

from ..problems import KeyPath

_PART = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_KEY = rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*"
_HEADER = re.compile(rf"[ \t]*\[\[?[ \t]*(?P<key>{_KEY})[ \t]*\]")
_STATEMENT = re.compile(rf"[ \t]*(?P<key>{_KEY})[ \t]*=")
_PARTS = re.compile(_PART)
_TOKEN = re.compile(
    r'"""|\'\'\'|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}]',
)


def line_numbers(text: str) -> dict[KeyPath, int]:
    """The line of the first mention of every key and table.

    A key in the second `[[table]]` has the number 1 in its path: ("table", "1", "key").
    """
    found: dict[KeyPath, int] = {}
    table: KeyPath = ()
    rows: Counter[KeyPath] = Counter()
    for number, line in _statements(text):
        if header := _HEADER.match(line):
            table = _path(header["key"])
            if line.lstrip().startswith("[["):
                _mention(found, (), table, number)
                rows[table] += 1
                table = (*table, str(rows[table] - 1))
            _mention(found, (), table, number)
        elif statement := _STATEMENT.match(line):
            _mention(found, table, _path(statement["key"]), number)
    return found


def line_of(path: KeyPath, numbers: Mapping[KeyPath, int]) -> int | None:
    """The line of a key or of the innermost table around it that is written somewhere."""
    for length in range(len(path), 0, -1):
        if path[:length] in numbers:
            return numbers[path[:length]]
    return None


def _mention(found: dict[KeyPath, int], table: KeyPath, key: KeyPath, number: int) -> None:
    for length in range(1, len(key) + 1):
        found.setdefault(table + key[:length], number)


def _path(key: str) -> KeyPath:
    return tuple(_unquoted(part) for part in _PARTS.findall(key))


def _unquoted(part: str) -> str:
    if part.startswith("'"):
        return part[1:-1]
    if not part.startswith('"'):
        return part
    try:
        return str(json.loads(part))
    except ValueError:  # \U, which JSON does not have: no line is better than a wrong one
        return part


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """The lines at whose start no string and no bracket is open, with their numbers."""
    inside: str | None = None
    depth = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if inside is None and depth == 0:
            yield number, line
        inside, depth = _after(line, inside, depth)


def _after(line: str, inside: str | None, depth: int) -> tuple[str | None, int]:
    """The open string and the depth of brackets at the end of a line."""
    at = 0
    while at < len(line):
        if inside is not None:
            end = _closing(line, inside, at)
            if end is None:
                return inside, depth
            inside, at = None, end
        token = _TOKEN.search(line, at)
        if token is None:
            break
        at = token.end()
        word = token[0]
        if word in ('"""', "'''"):
            inside = word
        elif len(word) == 1 and word in "[]{}":
            depth = max(0, depth + (1 if word in "[{" else -1))
    return inside, depth


def _closing(line: str, quotes: str, at: int) -> int | None:
    """The index after the quotes that close a multi-line string."""
    while at < len(line):
        if quotes == '"""' and line[at] == "\\":
            at += 2
        elif line.startswith(quotes, at):
            at += 3
            while at < len(line) and line[at] == quotes[0]:  # up to two more belong to the text
                at += 1
            return at
        else:
            at += 1
    return None
