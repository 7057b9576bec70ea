"""Pure: secrets, made unreadable before anything is shown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

MASK = "***"

_SECRET = re.compile(
    r"passw|passphrase|pwd|secret|token|credential|private|cookie|dsn"
    r"|(^|[_-])(key|apikey|auth|authorization)($|[_-])",
    re.IGNORECASE,
)
_USERINFO = re.compile(r"(?P<before>[A-Za-z][A-Za-z0-9+.-]*://[^\s/@:]*):[^\s/@]*@")
_ASSIGNED = re.compile(r"(?P<name>-*[A-Za-z0-9_-]+)=.+", re.DOTALL)


def is_secret(name: str) -> bool:
    """Whether a variable or option of that name likely holds a secret."""
    return _SECRET.search(name) is not None


def without_password(text: str) -> str:
    """The text with the passwords of its URLs masked."""
    return _USERINFO.sub(rf"\g<before>:{MASK}@", text)


def masked(name: str, value: object) -> object:
    """A value that is shown under that name."""
    match value:
        case Mapping():
            return {str(key): masked(str(key), each) for key, each in value.items()}
        case list() | tuple():
            return masked_words(value)
        case bool() | None:
            return value
        case str():
            return MASK if is_secret(name) else without_password(value)
        case _:
            return MASK if is_secret(name) else value


def masked_words(words: Sequence[object]) -> list[object]:
    """The words of a command, without what follows `--password`, `--token=` and their like."""
    result: list[object] = []
    hides_next = False
    for word in words:
        if not isinstance(word, str):
            result.append(masked("", word))
            continue
        assigned = _ASSIGNED.fullmatch(word)
        if hides_next and not word.startswith("-"):
            result.append(MASK)
        elif assigned is not None and is_secret(assigned["name"]):
            result.append(f"{assigned['name']}={MASK}")
        else:
            result.append(without_password(word))
        hides_next = assigned is None and word.startswith("-") and is_secret(word)
    return result
