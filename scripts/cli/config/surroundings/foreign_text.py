"""Pure: texts of other supervisors' files as values of ours, in which placeholders are replaced."""

from __future__ import annotations

import re

from .inline_text import inline_words
from .placeholders import escaped

_MARK = re.compile("\ue000(?P<form>[^\ue001]*)\ue001")


def number_mark(first: int = 0, width: int = 0) -> str:
    """Stands for the number of a worker until the text around it is translated."""
    return f"\ue000n{f'+{first}' if first else ''}{f':0{width}' if width > 1 else ''}\ue001"


def variable_mark(name: str) -> str:
    """Stands for the value of a variable until the text around it is translated."""
    return f"$\ue000{name}\ue001"


def is_marked(text: str) -> bool:
    """Whether the text contains the number of a worker."""
    return _MARK.search(text) is not None


def translated(text: str) -> str:
    """A text as a value of a file: what only looks like a placeholder is kept."""
    return _MARK.sub(r"{\g<form>}", escaped(text))


def translated_words(words: list[str]) -> list[str]:
    """A command as a value of a file.

    Raises:
        LookupError: the number is in the text of a program, where it is not replaced.
    """
    kept = inline_words(words)
    if any(is_marked(words[place]) for place in kept if place < len(words)):
        raise LookupError("the text of a program contains the number, which cannot be replaced there")
    return [word if place in kept else translated(word) for place, word in enumerate(words)]
