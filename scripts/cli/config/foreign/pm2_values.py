"""Pure: how PM2 reads a value: times, sizes, and what JavaScript makes of the rest."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMG]?)B?", re.IGNORECASE)
_MEGABYTES = {"": 1 / 1024**2, "K": 1 / 1024, "M": 1, "G": 1024}
_TIME = re.compile(r"(\d+)\s*(ms|s|m|h)?")
_SECONDS = {None: 0.001, "ms": 0.001, "s": 1, "m": 60, "h": 3600}


def text(value: object) -> str:
    """A value as JavaScript makes text of it: strings as they are, the rest as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(_numbers(value), ensure_ascii=False, separators=(",", ":"))


def _numbers(value: object) -> object:
    """The same, with 1 for 1.0: JavaScript has one kind of numbers."""
    match value:
        case float() if value.is_integer() and abs(value) < 1e21:
            return int(value)
        case Mapping():
            return {name: _numbers(each) for name, each in value.items()}
        case list():
            return [_numbers(each) for each in value]
        case _:
            return value


def words(given: object) -> list[str]:
    """Arguments, which are a list or stand in one string.

    Raises:
        ValueError: a quotation does not end.
    """
    return [text(word) for word in given] if isinstance(given, list) else shlex.split(text(given))


def whole(value: object) -> int | None:
    """A number of things, which may stand in a string; None: it is none."""
    found = text(value)
    return int(found) if found.isascii() and found.isdecimal() else None


def seconds(key: str, value: object) -> float:
    """A time: milliseconds, or with its unit.

    Raises:
        ValueError: it is none.
    """
    found = _TIME.fullmatch(text(value))
    if found is None:
        raise ValueError(f"{key} = {text(value)}: is no time")
    time = int(found[1]) * _SECONDS[found[2]]
    return int(time) if time == int(time) else time


def megabytes(key: str, value: object) -> float:
    """A size: bytes, or with its unit.

    Raises:
        ValueError: it is none.
    """
    found = _SIZE.fullmatch(text(value))
    if found is None:
        raise ValueError(f"{key} = {text(value)}: is no size")
    return round(float(found[1]) * _MEGABYTES[found[2].upper()], 3)
