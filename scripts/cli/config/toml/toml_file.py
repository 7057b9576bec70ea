"""Reads the tables of a TOML file; errors have a line and a column."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from ..problems import ConfigError, ConfigProblem
from .syntax_errors import explained

LARGEST = 1 << 20
"""In bytes. A larger file is not a configuration."""

_PLACE = re.compile(r" \(at line (?P<line>\d+), column (?P<column>\d+)\)$")


def read_text(path: Path) -> str:
    """The text of a file.

    Raises:
        ConfigError: it is missing, unreadable, too large, or not UTF-8.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise _refused(path, f"cannot be read: {why}") from None
    if len(raw) > LARGEST:
        raise _refused(path, f"is larger than {LARGEST} bytes")
    try:
        return raw.decode().removeprefix("\ufeff")  # some editors write a byte-order mark
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        line = before.count(b"\n") + 1
        column = error.start - (before.rfind(b"\n") + 1) + 1
        raise _refused(path, "is not UTF-8", line, column) from None


def tables(text: str, path: Path) -> dict[str, object]:
    """The tables of a TOML text.

    Raises:
        ConfigError: it is not TOML; only the first syntax error is reported.
    """
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise _refused(path, "is nested too deeply") from None
    except ValueError as error:  # also of invalid numbers and dates
        message = str(error)
        place = _PLACE.search(message)
        if place is None:
            raise _refused(path, f"is not TOML: {message}") from None
        line, column = int(place["line"]), int(place["column"])
        reason = explained(_PLACE.sub("", message), text, line, column)
        raise _refused(path, f"is not TOML: {reason}", line, column) from None


def _refused(path: Path, reason: str, line: int | None = None, column: int | None = None) -> ConfigError:
    return ConfigError([ConfigProblem(str(path), reason, line=line, column=column)])
