"""Pure: the command of a line for a shell, time spans, sizes, and lists of variables of other files."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

from ..surroundings.foreign_text import translated_words

_NEEDS_A_SHELL = re.compile(r"[$`&|;<>()*?\[\]{}~#!\n]|(^|\s)[A-Za-z_]\w*=")
_SPAN = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)")
_UNITS = {
    "": 1.0, "s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0, "ms": 0.001, "msec": 0.001, "us": 1e-6,
    "m": 60.0, "min": 60.0, "minute": 60.0, "minutes": 60.0, "h": 3600.0, "hr": 3600.0, "hour": 3600.0,
    "hours": 3600.0, "d": 86_400.0, "day": 86_400.0, "days": 86_400.0, "w": 604_800.0,
}  # fmt: skip
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)i?b?", re.IGNORECASE)
_POWERS = {"": -2, "k": -1, "m": 0, "g": 1, "t": 2}


def command_of(line: str) -> list[str]:
    """The command that a line for a shell means: its words, or a shell where it needs one.

    Raises:
        ValueError: a quotation mark is missing.
    """
    if _NEEDS_A_SHELL.search(line):
        shlex.split(line)
        return ["sh", "-c", line if ";" in line or "&&" in line or "|" in line else f"exec {_assigned(line)}"]
    return translated_words(shlex.split(line))


def _assigned(line: str) -> str:
    """A line that may begin with variables, as a command that `exec` can run."""
    return f"env {line}" if re.match(r"\s*[A-Za-z_]\w*=", line) else line


def seconds(key: str, value: str) -> float:
    """A time span such as `90`, `1min 30s`, `500ms`.

    Raises:
        ValueError: it is not one.
    """
    found = _SPAN.findall(value)
    if not found or _SPAN.sub("", value).strip() or any(unit.lower() not in _UNITS for _, unit in found):
        raise ValueError(f"{key} = {value}: is not a time span")
    return round(sum(float(number) * _UNITS[unit.lower()] for number, unit in found), 6)


def megabytes(key: str, value: object, kilo: int = 1024) -> float:
    """A size such as `512M`, `1.5g`, `1073741824`.

    1 MB of memory is 1024² bytes; 1 MB of a log file is 1000² bytes.

    Raises:
        ValueError: it is not one.
    """
    found = _SIZE.fullmatch(str(value).strip())
    if found is None:
        raise ValueError(f"{key} = {value}: is not a size")
    return max(1.0, round(float(found[1]) * float(kilo) ** _POWERS[found[2].lower()], 3))


def assignments(key: str, words: Iterable[str]) -> dict[str, object]:
    """Variables written as `NAME=value`.

    Raises:
        ValueError: a word is not one.
    """
    pairs = [word.partition("=") for word in words]
    for name, sign, _ in pairs:
        if not name or not sign:
            raise ValueError(f"{key}: {name!r} is not a variable with a value")
    return {name: value for name, _, value in pairs}
