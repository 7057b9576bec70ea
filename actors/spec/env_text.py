"""Pure: the syntax of files of environment variables (`.env`).

`NAME=value`, one to a line, with or without `export`. `#` begins a comment. In double quotes a value may go
over several lines, and a backslash escapes n, t, r, quotation marks, backslashes and dollar signs; in single
quotes all is literal.
`${NAME}` and `${NAME:-default}` stand for variables from before, except in single quotes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_BLANK = re.compile(r"[ \t\r\f\v]*(#[^\n]*)?(\n|\Z)")
_NAME = re.compile(r"[ \t]*(?:export[ \t]+)?(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)[ \t]*=[ \t]*")
_SINGLE = re.compile(r"'(?P<text>[^']*)'")
_DOUBLE = re.compile(r'"(?P<text>(?:[^"\\]|\\.)*)"', re.DOTALL)
_PLAIN = re.compile(r"(?P<text>[^\n]*?)(?=[ \t]+#|[ \t\r]*(?:\n|\Z))")
_LINE = re.compile(r"[^\n]*(\n|\Z)")
_INSIDE = re.compile(
    r"\\(?P<escape>.)|\$\{(?P<name>[A-Za-z_]\w*)(?P<has>:-(?P<default>[^{}]*))?\}", re.DOTALL
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


class EnvText:
    """The variables of a text, and its problems by line."""

    def __init__(self, text: str, known: Mapping[str, str]) -> None:
        self.variables: dict[str, str] = {}
        self.problems: list[tuple[int, str]] = []
        self._known = known
        self._text = text.removeprefix("\ufeff")
        self._at = 0
        while self._at < len(self._text):
            self._line()

    def _line(self) -> None:
        if (blank := _BLANK.match(self._text, self._at)) is not None:
            self._at = blank.end()
            return
        name = _NAME.match(self._text, self._at)
        if name is None:
            self._refuse("is not NAME=value")
            return
        begin, end = self._at, name.end()
        value = self._value(end)
        if value is None:
            self._at = begin
            self._refuse(f"the quotation mark of {name['name']} is not closed")
            return
        text, self._at = value
        if (rest := _BLANK.match(self._text, self._at)) is None:
            self._refuse(f"has more text after the value of {name['name']}")
        else:
            self._at = rest.end()
            self.variables[name["name"]] = text

    def _value(self, at: int) -> tuple[str, int] | None:
        """The value that begins there, and where it ends; None: its quotation mark is not closed."""
        quote = self._text[at : at + 1]
        pattern = {"'": _SINGLE, '"': _DOUBLE}.get(quote, _PLAIN)
        found = pattern.match(self._text, at)
        if found is None:
            return None
        text = found["text"]
        if quote != "'":
            text = _INSIDE.sub(lambda inside: self._replaced(inside, in_quotes=quote == '"'), text)
        return text, found.end()

    def _replaced(self, found: re.Match[str], *, in_quotes: bool) -> str:
        if (letter := found["escape"]) is not None:
            if not in_quotes:
                return found[0]
            return _ESCAPES.get(letter) or (letter if letter in '"\\$' else found[0])
        name = found["name"]
        value = self.variables.get(name, self._known.get(name, ""))
        if not value and found["has"]:
            return str(found["default"])
        if name not in self.variables and name not in self._known:
            reason = f"{name} is not set: set it, write ${{{name}:-default}}, or use single quotes to keep it"
            self.problems.append((self._number(), reason))
        return value

    def _refuse(self, reason: str) -> None:
        """Note a problem of the line, and continue with the next one."""
        self.problems.append((self._number(), reason))
        line = _LINE.match(self._text, self._at)
        assert line is not None
        self._at = line.end()

    def _number(self) -> int:
        return self._text.count("\n", 0, self._at) + 1
