"""Pure: how supervisord reads a value: its %(expressions), its numbers and its lists."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..surroundings.foreign_text import number_mark

TRUE, FALSE = {"true", "on", "yes", "1"}, {"false", "off", "no", "0"}

# The digits of a width are limited, because a large width could exhaust the memory.
_EXPRESSION = re.compile(r"%(?:%|\((\w+)\)[#0 +-]*\d{0,3}(?:\.\d{1,3})?[a-zA-Z])")
_NUMBER = re.compile(r"%\(process_num\)(?:0(?P<width>[1-9]))?[ds]")
_VARIABLE = re.compile(r"\s*(\w+)\s*=\s*(\"[^\"]*\"|'[^']*'|[^,]*?)\s*(?:,|$)")


@dataclass(slots=True)
class Expressions:
    """The values of the %(names) in a file, and the names without a known value."""

    known: Mapping[str, object]
    unknown: dict[str, None] = field(default_factory=dict)
    """Names in the order of their first use."""
    first: int | None = None
    """The first number, if %(process_num)d is to become a placeholder."""

    def expanded(self, key: str, value: str) -> str:
        """The value with its known expressions expanded; the others stay unchanged.

        Raises:
            ValueError: an expression does not fit its value, such as %d for a word.
        """
        try:
            return _EXPRESSION.sub(self._expansion, value)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{key} = {value}: {error}") from None

    def with_variables(self, variables: Mapping[str, object]) -> Expressions:
        """These expressions, and %(ENV_NAME)s for each variable."""
        more = {f"ENV_{name}": value for name, value in variables.items()}
        return Expressions({**self.known, **more}, dict(self.unknown), self.first)

    def _expansion(self, found: re.Match[str]) -> str:
        if found[1] == "process_num" and self.first is not None:
            if (form := _NUMBER.fullmatch(found[0])) is None:
                raise LookupError(f"{found[0]} is not a form of a placeholder")
            return number_mark(self.first, int(form["width"] or 0))
        if found[1] is None or found[1] in self.known:
            return found[0] % self.known
        self.unknown[found[1]] = None
        return found[0]


def words(command: str) -> list[str]:
    """The words of a command.

    Raises:
        ValueError: a quotation mark is missing.
    """
    try:
        return shlex.split(command)
    except ValueError as error:
        raise ValueError(f"command: {error}") from None


def whole(key: str, value: str) -> int:
    """An integer of at least 0.

    Raises:
        ValueError: the value is not one.
    """
    if not value.isascii() or not value.isdecimal():
        raise ValueError(f"{key} = {value}: must be an integer of at least 0")
    return int(value)


def variables(text: str) -> dict[str, object]:
    """The variables of an `environment`: A=1,B="2,3".

    Raises:
        ValueError: the text is not a list of variables.
    """
    found: dict[str, object] = {}
    at = 0
    while at < len(text):
        pair = _VARIABLE.match(text, at)
        if pair is None or pair.end() == at:
            raise ValueError(f"environment = {text}: is not understood at {text[at : at + 20]!r}")
        found[pair[1]] = pair[2].strip("\"'")
        at = pair.end()
    return found
