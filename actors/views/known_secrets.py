"""Pure: secrets that are known by their form: keys with a prefix, private keys, credentials in URLs.

Every pattern runs in linear time, because the text comes from workers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

MASK = "***"

_PREFIXES = (
    r"(?:AKIA|ASIA|AGPA|AIDA|ANPA|ANVA|AROA)[A-Z0-9]{16}(?![A-Za-z0-9])",
    r"(?:gh[pousr]_|github_pat_)[A-Za-z0-9_]{20,}+",
    r"gl(?:pat|ptt|dt|rt|ft|soat|cbt|imt|agent)-[\w.-]{16,}+",
    r"(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,}+",
    r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,}+|whsec_[A-Za-z0-9+/=]{16,}+",
    r"sk-[A-Za-z0-9_-]{16,}+",
    r"AIza[\w-]{30,}+|ya29\.[\w-]{10,}+|GOCSPX-[\w-]{16,}+",
    r"npm_[A-Za-z0-9]{20,}+|pypi-[\w-]{16,}+|dckr_(?:pat|oat)_[\w-]{16,}+|hf_[A-Za-z0-9]{20,}+",
    r"SG\.[\w-]{10,}+\.[\w-]{10,}+|key-[0-9a-f]{32}(?![0-9a-f])",
    r"hv[sbr]\.[\w-]{16,}+|AGE-SECRET-KEY-[A-Z0-9]{16,}+|dop_v1_[0-9a-f]{32,}+|shp(?:at|ss)_[0-9a-fA-F]{16,}+",
    r"[0-9]{8,12}:AA[\w-]{30,}+",
    r"session-[\w-]{43}",
    r"(?<![\w-])eyJ[\w-]{10,}\.[\w-]+(?:\.[\w-]*)?",
)
"""How the keys of well-known services begin; the two last are Rekindle's session and a JWT."""
_KEY = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(_PREFIXES)})")
_HOOK = re.compile(
    r"(?P<before>hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/"
    r"|api\.telegram\.org/(?:file/)?bot|webhook\.office\.com/webhookb2/|outlook\.office\.com/webhook/)"
    r"[^\s\"'<>/][^\s\"'<>]*"
)
"""URLs that are secrets themselves."""

_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_LINE = re.compile(r"[A-Za-z0-9+/=]{16,}|[A-Za-z0-9+/]{1,76}={1,2}|[A-Za-z][A-Za-z-]*: .*|\s*")
"""A line within a private key: encoded bytes, or a header such as `Proc-Type: 4,ENCRYPTED`."""
_SHORT_KEY_LINE = re.compile(r"[A-Za-z0-9+/]{1,15}")

_LONGEST_USER = 20
_OF_URL = re.compile(r"[^\s\"'<>`]*")


def without_known_keys(text: str) -> str:
    """The text without private keys, keys of well-known services and URLs that are secrets."""
    return _HOOK.sub(rf"\g<before>{MASK}", _KEY.sub(MASK, _without_private_keys(text)))


def without_url_passwords(text: str) -> str:
    """The text with the credentials of its URLs masked.

    A password may contain `@` and `/`, although a URL must not: everything up to the last `@` is masked.
    """
    if "://" not in text:
        return text
    parts = text.split("://")
    masked = [parts[0]]
    for before, part in pairwise(parts):
        found = _OF_URL.match(part)
        assert found is not None
        web = before[-5:].lower().endswith(("http", "https"))
        masked.append(_without_credentials(found[0], web) + part[found.end() :])
    return "://".join(masked)


def _without_credentials(url: str, web: bool) -> str:
    """A URL after its scheme, without its password or token."""
    server = re.split("[/?#]", url, maxsplit=1)[0]
    user, colon, rest = server.partition(":")
    if colon and "@" in url and ("@" in server or not rest.isdigit()) and "@" not in user:
        name = MASK if len(user) >= _LONGEST_USER else user  # a token may stand in the user's place
        return f"{name}:{MASK}@{url.rpartition('@')[2]}"
    if "@" in server:
        user, _, host = server.rpartition("@")
        # ssh://git@host names a user; the web has tokens in this place.
        if web or len(user) >= _LONGEST_USER or "@" in user:
            return f"{MASK}@{host}{url[len(server) :]}"
    return url


def _without_private_keys(text: str) -> str:
    parts: list[str] = []
    at = 0
    while (begin := _BEGIN.search(text, at)) is not None:
        end = _END.search(text, begin.end())
        parts += (text[at : begin.end()], MASK)
        at = len(text) if end is None else end.start()
        if end is None:
            break
    return "".join((*parts, text[at:])) if parts else text


def lines_without_private_keys(lines: Iterable[str]) -> Iterator[str]:
    """The lines, with those masked that lie within a private key; other lines may stand between them."""
    inside = False
    for line in lines:
        if inside and _END.search(line) is not None:
            inside = False
            yield f"{MASK}{line[line.index('-----END') :]}"
        elif inside and _is_of_key(line.strip()):
            yield MASK
        elif (begin := _BEGIN.search(line)) is not None and _END.search(line, begin.end()) is None:
            inside = True
            yield f"{line[: begin.end()]}"
        else:
            yield line


def _is_of_key(line: str) -> bool:
    return _KEY_LINE.fullmatch(line) is not None or _SHORT_KEY_LINE.fullmatch(line) is not None
