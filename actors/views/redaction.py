"""Pure: masks secrets before text is shown.

It masks passwords in URLs, private keys, keys with a known prefix, what follows `Bearer` and `Basic`,
and values under a name such as `api_key`. Text that only mentions them ("token: expected ')'") stays.
Every pattern runs in linear time, because the text comes from workers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from .known_secrets import MASK, without_known_keys, without_url_passwords

_SECRET = re.compile(
    r"passw|passphrase|pwd|kennwort|secret|token|credential|private|cookie|dsn"
    r"|(account|access|shared|master|primary|signing|encryption|api)[_-]?key"
    r"|(^|[_-])(key|auth|authorization|pass|pw|sig|signature)($|[_-])",
    re.IGNORECASE,
)
_QUERY = re.compile(
    r"(?P<before>[?&](?:password|sslpassword|passcode|passwd|pwd|secret|token)=)[^\s&#\"'<>]+", re.IGNORECASE
)
_ASSIGNED = re.compile(r"(?P<name>-*[A-Za-z0-9_-]+)=.+", re.DOTALL)

_SHORT_PASSWORD = re.compile(r"-p(?![0-9.:/]*$)(?=.*[^a-z-])[^=/\s]{3,}")
"""`-pS3cret`, as mysql takes it; not `-print`, `-p8080` or `-p80:80`."""
_NOT_A_PASSWORD = re.compile(r"-.*|[0-9.:-]+(?:/(?:tcp|udp))?|[./~].*|.*/.*\.[a-z]{1,5}", re.DOTALL)
"""What follows `-p` as a port, a path or another option."""
_FURTHER_OPTION = re.compile(r"--[a-z].*|-[A-Za-z]", re.DOTALL)
_GLUED_PASSWORD = re.compile(
    r"(?<!\S)-p(?!rint0|thread|ython)(?=[^\s=/]*[A-Za-z])(?=[^\s=/]*[0-9])[^\s=/]{5,}+(?!\S)"
)
"""The same within a text, where `-p8080` and ordinary options are more frequent."""
_LOGIN = re.compile(r"(?![0-9:]*$)[^:/\s]{1,64}:.+", re.DOTALL)

_SCHEME = re.compile(
    r"(?<![A-Za-z0-9])(?P<scheme>Bearer|Basic)(?P<space>[ \t]{1,4})(?P<value>[\w.~+/=-]{8,})", re.IGNORECASE
)
_COOKIES = re.compile(r"(?P<before>cookie:[ \t]{0,4})[^\s=;\"']{1,64}=[^\n\"']*", re.IGNORECASE)
_NAME = re.compile(
    r"(?P<name>passw(?:or)?[dt]|kennwort|passphrase|pwd|secret|token|authorization|credentials?"
    r"|(?:api|access|private|secret|signing|encryption|account)[_-]?key)"
    r"(?P<rest>[_-][\w-]{0,32}|(?-i:[A-Z])[A-Za-z0-9]{0,20}|[0-9]{1,3})?"
    r"(?P<quoted>\\?[\"'])?"
    r"(?P<is>[ \t]{0,4}(?:=>|:?=(?!=)|:(?![:/]))[ \t]{0,4})",
    re.IGNORECASE,
)
_WEAK_NAME = re.compile(
    r"(?P<name>(?<![A-Za-z])(?:pass|pw|sig)|(?:X-Amz-|X-Goog-)signature"
    r"|(?-i:(?<=[A-Z0-9]_)(?:KEY|AUTH))|(?<![\w-])_auth)"
    r"(?P<rest>(?!))?(?P<quoted>\\?[\"'])?(?P<is>[ \t]?(?:=(?!=)|(?(quoted):(?![:/])|(?!)))[ \t]?)",
    re.IGNORECASE,
)
"""Names that stand for a secret only if a value is assigned to them: `DB_PASS=`, `"pass":`, `&sig=`."""
_OPTION = re.compile(
    r"(?P<before>(?<![^\s\"'])--?(?:[A-Za-z0-9]{1,20}-){0,4}(?:pass(?:word|wd|phrase)?|pw|pwd|token|secret|api-?key)"
    r"[ \t]{1,4}\"?'?)(?P<value>[^\s\"'-][^\s\"']*|-[^\s\"'-][^\s\"']{2,})"
    r"|(?P<login>(?<!\S)-u[ \t]{0,4}[^\s:\"'/]{1,64}:)[^\s\"']+",
    re.IGNORECASE,
)
"""The options of a command within a text: `--token abc`, `-u user:password`."""
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
    """The text with the passwords of its URLs masked, also those in a query (`?password=`)."""
    return _QUERY.sub(rf"\g<before>{MASK}", without_url_passwords(text))


def masked_text(text: str) -> str:
    """An untrusted text with everything masked that looks like a secret."""
    text = without_known_keys(without_password(text))
    text = _SCHEME.sub(_without_credentials, text)
    text = _COOKIES.sub(rf"\g<before>{MASK}", text)
    text = _GLUED_PASSWORD.sub(f"-p{MASK}", _OPTION.sub(_without_value, text))
    return _without_named(_without_named(text, _NAME), _WEAK_NAME)


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
    hides_next: Callable[[str], bool] | None = None
    for word in words:
        if not isinstance(word, str):
            result.append(masked("", word))
            continue
        assigned = _ASSIGNED.fullmatch(word)
        if hides_next is not None and hides_next(word):
            result.append(MASK)
        elif assigned is not None and is_secret(assigned["name"]):
            result.append(f"{assigned['name']}={MASK}")
        elif _SHORT_PASSWORD.fullmatch(word) is not None:
            result.append(f"-p{MASK}")
        elif len(result) > 0 and result[-1] in ("-u", "--user") and _LOGIN.fullmatch(word) is not None:
            result.append(f"{word.partition(':')[0]}:{MASK}")
        else:
            result.append(masked_text(word))
        hides_next = _hidden_after(word) if assigned is None else None
    return result


def _hidden_after(option: str) -> Callable[[str], bool] | None:
    """Which words are the secret of an option that stands before them."""
    if option == "-p":
        return lambda word: _NOT_A_PASSWORD.fullmatch(word) is None
    if option.startswith("-") and is_secret(option):
        return lambda word: _FURTHER_OPTION.fullmatch(word) is None
    return None


def _without_credentials(found: re.Match[str]) -> str:
    """`Basic understanding` and `bearer of news` are not masked."""
    value = found["value"]
    mixed = any(not letter.islower() for letter in value[1:])
    long = found["scheme"].lower() == "bearer" and len(value) >= _LONG - 4
    return f"{found['scheme']}{found['space']}{MASK}" if mixed or long else found[0]


def _without_value(found: re.Match[str]) -> str:
    """An option of a command without its value; prose about an option stays."""
    if found["login"] is not None:
        return f"{found['login']}{MASK}"
    is_prose = found["value"].isalpha() and found["value"].islower() and len(found["value"]) < 8
    return found[0] if is_prose else f"{found['before']}{MASK}"


def _without_named(text: str, names: re.Pattern[str]) -> str:
    """The text with the values under secret names masked."""
    parts: list[str] = []
    done = 0
    for head in names.finditer(text):
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
    if name == "sig" and len(text) < 8:  # a signal
        return False
    said = head["is"].startswith(":") and head["is"].endswith((" ", "\t")) and not head["quoted"]
    if not said or (name == "authorization" and value["scheme"] is not None):
        return True
    if len(text) >= _LONG or (len(text) >= 4 and any(letter.isdigit() for letter in text)):
        return True
    if quoted:
        return name != "token"  # a parser's token is quoted as well
    return _LAST_OF_ITS_PHRASE.match(value.string, value.end()) is not None
