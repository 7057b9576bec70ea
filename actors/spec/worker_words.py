"""Pure: `{n}`, `{name}` and `{id}` in a text, which stand for the number, the group and the id of a worker.

`{n}` is also written as `{n+8000}` and `{n:02}`; `{{n}}` stands for the text `{n}`. The settings of a
configuration file and the log file of a spec that is built in Python have these in common.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

NUMBER_FORM = r"n(?:\+\d{1,6})?(?::0[1-9])?"
FORM = rf"(?:{NUMBER_FORM}|name|id)"
"""What may stand in braces."""
TOKEN = rf"\{{(?P<kept>\{{{FORM}\}})\}}|\{{(?P<word>{FORM})\}}"
"""Braces that stand for themselves, or for a word."""

_TOKEN = re.compile(TOKEN)


@dataclass(frozen=True, slots=True)
class WorkerWords:
    """What the words of one worker stand for."""

    number: int
    name: str
    id: str

    @classmethod
    def of(cls, component_id: str, group: str) -> WorkerWords:
        """The words of a worker; one without a number has 0, and one without a group its id."""
        number = component_id.rpartition(":")[2]
        has_number = number.isascii() and number.isdecimal()
        return cls(int(number) if has_number else 0, group or component_id, component_id)

    def replaced(self, text: str) -> str:
        """The text with its words replaced."""
        return _TOKEN.sub(lambda found: found["kept"] or self.value(found["word"]), text)

    def value(self, word: str) -> str:
        """What a word of the form above stands for."""
        if word in ("name", "id"):
            return self.name if word == "name" else self.id
        plus, _, width = word.removeprefix("n").partition(":")
        return f"{self.number + int(plus or 0):{width}}"


def escaped_words(text: str) -> str:
    """A text that stands for itself where words are replaced."""
    return _TOKEN.sub(lambda found: f"{{{found[0]}}}", text)


def is_word(text: str) -> bool:
    """Whether the text between two braces is a word."""
    return re.fullmatch(FORM, text) is not None
