"""Pure: how PM2 reads a value: durations, sizes, and text as JavaScript converts it."""

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
    """A value as JavaScript text: a string unchanged, anything else as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(_numbers(value), ensure_ascii=False, separators=(",", ":"))


def _numbers(value: object) -> object:
    """The value with 1 instead of 1.0: JavaScript has one type of number."""
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
    """Arguments from a list or from one string.

    Raises:
        ValueError: a quotation mark is missing.
    """
    return [text(word) for word in given] if isinstance(given, list) else shlex.split(text(given))


def whole(value: object) -> int | None:
    """An integer of at least 0, also from a string; None if the value is not one."""
    found = text(value)
    return int(found) if found.isascii() and found.isdecimal() else None


def seconds(key: str, value: object) -> float:
    """A duration: milliseconds, or a number with a unit.

    Raises:
        ValueError: the value is not a duration.
    """
    found = _TIME.fullmatch(text(value))
    if found is None:
        raise ValueError(f"{key} = {text(value)}: is not a duration")
    time = int(found[1]) * _SECONDS[found[2]]
    return int(time) if time == int(time) else time


def megabytes(key: str, value: object) -> float:
    """A size: bytes, or a number with a unit.

    Raises:
        ValueError: the value is not a size.
    """
    found = _SIZE.fullmatch(text(value))
    if found is None:
        raise ValueError(f"{key} = {text(value)}: is not a size")
    return round(float(found[1]) * _MEGABYTES[found[2].upper()], 3)
