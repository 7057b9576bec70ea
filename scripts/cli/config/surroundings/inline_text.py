"""Pure: which words of a command are the text of a program: `sh -c TEXT`, `python3 -c TEXT`, `awk TEXT`."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

_OPTIONS = (
    (re.compile(r"(ba|da|z|k|mk|a|fi|c|tc)?sh|su"), re.compile(r"-[A-Za-z]*c")),
    (re.compile(r"(python|pypy)[0-9.]*"), re.compile(r"-[A-Za-z]*c")),
    (re.compile(r"(perl|ruby|node|nodejs|lua|julia)[0-9.]*"), re.compile(r"-[A-Za-z]*[eEp]|--eval|--print")),
    (re.compile(r"(deno|bun)"), re.compile(r"eval|-e|--eval|-p|--print")),
    (re.compile(r"php[0-9.]*"), re.compile(r"-[A-Za-z]*r")),
)  # fmt: skip
"""Interpreters, and the option after which the text of a program follows."""

_FIRST_WORD = re.compile(r"(g|m|n)?awk|jq|yq|sed|gsed")
"""Programs whose first word that is not an option is a text."""


def inline_words(words: Sequence[object]) -> frozenset[int]:
    """The places of the words that are the text of a program."""
    texts: set[int] = set()
    option: re.Pattern[str] | None = None
    waits_for_word = False
    for place, word in enumerate(words):
        if not isinstance(word, str) or place in texts:
            continue
        if option is not None and option.fullmatch(word):
            texts.add(place + 1)
            option = None
        elif waits_for_word and not word.startswith("-"):
            texts.add(place)
            waits_for_word = False
        else:
            program = os.path.basename(word)
            option = _option_of(program) or option
            waits_for_word = waits_for_word or _FIRST_WORD.fullmatch(program) is not None
    return frozenset(texts)


def _option_of(program: str) -> re.Pattern[str] | None:
    return next((option for names, option in _OPTIONS if names.fullmatch(program)), None)
