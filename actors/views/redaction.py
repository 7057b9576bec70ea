"""Pure: masks secrets before text is shown.

It masks passwords in URLs, keys with a known prefix, what follows `Bearer` and `Basic`, and values
under a name such as `api_key`. Text that only mentions them ("token: expected ')'") stays. Every
pattern runs in linear time, because the text comes from workers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

MASK = "***"

_SECRET = re.compile(
    r"passw|passphrase|pwd|secret|token|credential|private|cookie|dsn"
    r"|(^|[_-])(key|apikey|auth|authorization)($|[_-])",
    re.IGNORECASE,
)
_USERINFO = re.compile(r"(?P<before>(?<=[A-Za-z0-9+.-]://)[^\s/@:]*):[^\s/@]*@")
_ASSIGNED = re.compile(r"(?P<name>-*[A-Za-z0-9_-]+)=.+", re.DOTALL)

_KNOWN_KEY = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:AKIA|ASIA|AGPA|AIDA|ANPA|ANVA|AROA)[A-Z0-9]{16}(?![A-Za-z0-9])"
    r"|gh[pousr]_[A-Za-z0-9]{20,}|xox[abprs]-[A-Za-z0-9-]{10,}"
    r"|(?<![\w-])eyJ[\w-]{10,}\.[\w-]+(?:\.[\w-]*)?"
    r")"
)
_SCHEME = re.compile(
    r"(?<![A-Za-z0-9])(?P<scheme>Bearer|Basic)(?P<space>[ \t]{1,4})(?P<value>[\w.~+/=-]{8,})", re.IGNORECASE
)
_COOKIES = re.compile(r"(?P<before>cookie:[ \t]{0,4})[^\s=;\"']{1,64}=[^\n\"']*", re.IGNORECASE)
_NAME = re.compile(
    r"(?P<name>passw(?:or)?d|passphrase|pwd|secret|token|authorization|credentials?"
    r"|(?:api|access|private|secret|signing|encryption)[_-]?key)"
    r"(?P<rest>[_-][\w-]{0,32}|(?-i:[A-Z])[A-Za-z0-9]{0,20}|[0-9]{1,3})?"
    r"(?P<quoted>\\?[\"'])?"
    r"(?P<is>[ \t]{0,4}(?:=>|:?=(?!=)|:(?![:/]))[ \t]{0,4})",
    re.IGNORECASE,
)
_VALUE = re.compile(
    r"(?P<open>\\?\"|\\?')(?P<inner>(?:(?!(?P=open))(?:\\.|[^\n]))*)"
    r"|(?P<scheme>(?:Bearer|Basic|Digest|Token|ApiKey)[ \t]{1,4})?"
    r"(?P<word>(?:[^\s,;&\"'`)\]}>]|[)\]}>](?![\s,;.)\]}>]|$))+)",
    re.IGNORECASE | re.MULTILINE,
)
_LAST_OF_ITS_PHRASE = re.compile(r"[,;&)\]}>\"'`]|[ \t]*$", re.MULTILINE)
_NO_SECRETS = frozenset(
    ("none", "null", "nil", "undefined", "true", "false", "str", "string", "bytes", "int", "bool", "any")
)
_ABOUT_ONE = frozenset(
    ("count", "type", "limit", "length", "len", "size", "file", "path", "name", "url", "ttl", "expires",
     "expiry", "policy", "index", "usage")
)  # fmt: skip
"""Parts of a name that describe a secret and do not hold one."""
_LONG = 20
"""Longer than ordinary words."""


def is_secret(name: str) -> bool:
    """Whether a variable or option of this name likely holds a secret."""
    return _SECRET.search(name) is not None


def without_password(text: str) -> str:
    """The text with the passwords of its URLs masked."""
    return _USERINFO.sub(rf"\g<before>:{MASK}@", text)


def masked_text(text: str) -> str:
    """An untrusted text with everything masked that looks like a secret."""
    text = _KNOWN_KEY.sub(MASK, without_password(text))
    text = _SCHEME.sub(_without_credentials, text)
    text = _COOKIES.sub(rf"\g<before>{MASK}", text)
    return _without_named(text)


def masked(name: str, value: object) -> object:
    """The value as it is shown under this name."""
    match value:
        case Mapping():
            return {str(key): masked(str(key), each) for key, each in value.items()}
        case list() | tuple():
            return masked_words(value)
        case bool() | None:
            return value
        case str():
            return MASK if is_secret(name) else masked_text(value)
        case _:
            return MASK if is_secret(name) else value


def masked_words(words: Sequence[object]) -> list[object]:
    """The words of a command, with the values of `--password`, `--token=` and similar options masked."""
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
            result.append(masked_text(word))
        hides_next = assigned is None and word.startswith("-") and is_secret(word)
    return result


def _without_credentials(found: re.Match[str]) -> str:
    """`Basic understanding` and `bearer of news` are not masked."""
    value = found["value"]
    mixed = any(not letter.islower() for letter in value[1:])
    long = found["scheme"].lower() == "bearer" and len(value) >= _LONG - 4
    return f"{found['scheme']}{found['space']}{MASK}" if mixed or long else found[0]


def _without_named(text: str) -> str:
    """The text with the values under secret names masked."""
    parts: list[str] = []
    done = 0
    for head in _NAME.finditer(text):
        if head.start() < done:
            continue  # inside a masked value
        value = _VALUE.match(text, head.end())
        if value is None or not _hides(head, value):
            continue
        start, end = value.span("word" if value["open"] is None else "inner")
        parts += (text[done:start], MASK)
        done = end
    return "".join((*parts, text[done:]))


def _hides(head: re.Match[str], value: re.Match[str]) -> bool:
    """Whether the value is a secret, and not prose about one."""
    name, rest = head["name"].lower(), head["rest"] or ""
    if not _ABOUT_ONE.isdisjoint(re.split("[_-]", rest.lower())):
        return False
    quoted = value["open"] is not None
    text = value["inner"] if quoted else value["word"]
    if not text or text.lower() in _NO_SECRETS or (name == "pwd" and text.startswith("/")):
        return False
    said = head["is"].startswith(":") and head["is"].endswith((" ", "\t")) and not head["quoted"]
    if not said or (name == "authorization" and value["scheme"] is not None):
        return True
    if len(text) >= _LONG or (len(text) >= 4 and any(letter.isdigit() for letter in text)):
        return True
    if quoted:
        return name != "token"  # a parser's token is quoted as well
    return _LAST_OF_ITS_PHRASE.match(value.string, value.end()) is not None
