"""The problems of a file: where, the value, and what is allowed instead.

Inside the package a `ConfigFinding` names a key by its path; `ConfigProblem` is what callers see.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from rekindle.actors.errors import NO_VALUE, RekindleError, UnknownWorkerError
from rekindle.actors.views.redaction import masked
from rekindle.worker.plain_text import printable

KeyPath = tuple[str, ...]

NOTHING: Final = NO_VALUE
"""There is no value to show."""

_BARE = re.compile(r"[A-Za-z0-9_-]{1,60}")
_LONGEST = 80
_DEEPEST = 3


@dataclass(frozen=True, slots=True)
class ConfigFinding:
    """One problem or warning, with the path of its key."""

    path: KeyPath
    reason: str
    value: object = NOTHING
    origin: str = ""
    """The source of the value, if it is not the file."""
    wrong_in_itself: bool = False
    """Further findings about the same key are consequences of this one."""


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """One problem of a file; `str` returns the line that is printed."""

    file: str
    reason: str
    key: str = ""
    """The dotted key; empty for the file as a whole."""
    value: str | None = None
    """The value as TOML: shortened, secrets masked."""
    origin: str = ""
    line: int | None = None
    """The line of the key, or of the table that it belongs to; None if unknown."""
    column: int | None = None
    severity: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        what = self.key if self.value is None else f"{self.key} = {self.value}"
        what += f" ({self.origin})" if self.origin else ""
        label = "warning" if self.severity == "warning" else ""
        return printable(": ".join(part for part in (place, label, what, self.reason) if part))


class UnknownGroupError(UnknownWorkerError):
    """No group of workers has that name."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(name)
        listed = ", ".join(known) or "none"
        self.args = (f"no group is named {name!r}; known groups: {listed}",)


class ConfigError(RekindleError, ValueError):
    """The file is not valid; all problems are listed."""

    def __init__(self, problems: Iterable[ConfigProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class AddressError(ConfigError):
    """The file is valid, but a socket of its workers cannot be opened now; its address may be free later."""


def dotted(path: KeyPath) -> str:
    """A key as it would be written in the file, shortened."""
    return ".".join(part if _BARE.fullmatch(part) else _quoted(part, 60) for part in path)


def shown(path: KeyPath, value: object) -> str | None:
    """A value as it would be written in the file: on one line, shortened, secrets masked."""
    if value is NOTHING:
        return None
    text = _written(masked(path[-1] if path else "", value), 0)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _quoted(text: str, longest: int = _LONGEST) -> str:
    cut = text if len(text) <= longest else text[:longest] + "…"
    return json.dumps(cut, ensure_ascii=False)


def _written(value: object, depth: int) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            # Python refuses to convert numbers with many digits to text.
            return str(value) if value.bit_length() <= 64 else "(a number of more than 64 bits)"
        case str():
            return _quoted(value)
        case Mapping() if depth < _DEEPEST:
            pairs = (f"{dotted((str(key),))} = {_written(each, depth + 1)}" for key, each in value.items())
            return "{" + ", ".join(pairs) + "}"
        case list() | tuple() if depth < _DEEPEST:
            return "[" + ", ".join(_written(each, depth + 1) for each in value) + "]"
        case Mapping() | list() | tuple():
            return "…"
        case None:
            return _quoted("none")
        case _:
            return str(value)
