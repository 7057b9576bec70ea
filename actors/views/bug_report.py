"""Pure: a worker for a bug report, without secrets.

The values of environment variables are left out. Everything that looks like a secret is masked in every
text of the whole document, and so are the secrets that the supervisor knows: those of the worker's
environment, inherited ones included, and the password of the database.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import cast
from urllib.parse import quote, unquote

from ..spec.program import PythonCall
from ..spec.worker_spec import WorkerSpec
from .known_secrets import MASK, lines_without_private_keys
from .redaction import is_secret, masked, masked_text, masked_words

SHORTEST_SECRET = 4
"""Shorter values occur in any text by chance."""
SHORTEST_ENCODED = 8
"""Likewise in base64."""

_ORDINARY = frozenset({"true", "false", "none", "null", "auto", "basic", "bearer", "enabled", "disabled"})
_PASSWORD = re.compile(
    r"://[^\s/@:]*:(?P<password>[^\s]+)@|[?&](?:ssl)?pass(?:word|code)=(?P<query>[^\s&#]+)"
)
_URL_SAFE = str.maketrans("+/", "-_")


def declared(spec: WorkerSpec) -> dict[str, object]:
    """The declaration of a worker, without secrets."""
    run = spec.run
    what = run.target if isinstance(run, PythonCall) else masked_words(run.argv)
    return {
        "id": spec.id,
        "python" if isinstance(run, PythonCall) else "command": what,
        "reports_health": run.reports_health,
        "restart": _settings(spec.restart),
        "health": _settings(spec.health),
        "stop": _settings(spec.stop),
        "limits": None if spec.limits is None else _settings(spec.limits),
        "ready": None if spec.ready is None else _settings(spec.ready),
        "alive": None if spec.alive is None else _settings(spec.alive),
        "env": sorted(spec.env),
        "inherit_env": list(spec.inherit_env),
        "cwd": spec.cwd,
        "user": spec.user,
        "after": list(spec.after),
    }


def without_secrets(document: object, secrets: Collection[str]) -> object:
    """A whole document with every text in it masked, and these secrets in particular."""
    clean = cleaner(secrets)

    def masked_part(part: object) -> object:
        match part:
            case str():
                return clean(part)
            case dict():
                return {masked_part(name): masked_part(each) for name, each in part.items()}
            case list() | tuple():
                return [masked_part(each) for each in _lines_masked(part)]
            case _:
                return part

    return masked_part(document)


def _lines_masked(items: Sequence[object]) -> list[object]:
    """A list of lines, or of (stream, line), with the private keys masked that extend over several lines."""
    if items and all(isinstance(each, str) for each in items):
        return list(lines_without_private_keys(map(str, items)))
    if items and all(_is_line(each) for each in items):
        pairs = [(stream, text) for stream, text in cast("Sequence[tuple[str, str]]", items)]
        texts = lines_without_private_keys(text for _, text in pairs)
        return [[stream, text] for (stream, _), text in zip(pairs, texts, strict=True)]
    return list(items)


def _is_line(item: object) -> bool:
    """Whether this is a stream and a line."""
    return isinstance(item, list | tuple) and len(item) == 2 and all(isinstance(each, str) for each in item)


def cleaner(secrets: Collection[str]) -> Callable[[str], str]:
    """A function that masks these secrets, and what looks like one, in a text."""
    # The longest first, since one may contain another.
    forms = sorted({form for secret in secrets for form in _forms(secret)}, key=len, reverse=True)

    def clean(text: str) -> str:
        for form in forms:
            text = text.replace(form, MASK)
        return masked_text(text)

    return clean


def secrets_of(environment: Mapping[str, str], *addresses: str | None) -> frozenset[str]:
    """The secret values of an environment, and the passwords of its URLs and of these addresses."""
    named = {value for name, value in environment.items() if is_secret(name)}
    urls = [*environment.values(), *(address for address in addresses if address is not None)]
    passwords = {password for url in urls for password in _passwords(url)}
    return frozenset(
        secret for secret in named | passwords if len(secret) >= SHORTEST_SECRET and secret not in _ORDINARY
    )


def _passwords(url: str) -> Iterator[str]:
    """The password in a URL, as it is written there and as it is meant."""
    for found in _PASSWORD.finditer(url):
        password = found["password"] or found["query"]
        yield password
        yield unquote(password)


def _forms(secret: str) -> Iterator[str]:
    """A secret as it may stand in a text: also in `repr`, in JSON, in a URL, and in base64."""
    yield secret
    yield repr(secret)[1:-1]
    yield json.dumps(secret)[1:-1]
    yield quote(secret, safe="")
    if len(secret) < SHORTEST_ENCODED:
        return
    data = secret.encode("utf-8", "surrogateescape")
    # What stands before it ("user:") moves it within the groups of three bytes: only the characters are
    # compared that do not depend on its neighbours.
    for before in range(3):
        first = 0 if before == 0 else before + 1
        encoded = base64.b64encode(bytes(before) + data).rstrip(b"=")
        last = (before + len(data)) * 8 // 6
        text = encoded[first:last].decode()
        yield text
        yield text.translate(_URL_SAFE)


def _settings(policy: object) -> dict[str, object]:
    plain = _plain(policy)
    assert isinstance(plain, dict)
    return {
        name: masked("", value) if isinstance(value, str | list | dict) else value
        for name, value in plain.items()
    }


def _plain(value: object) -> object:
    """Policies as dicts. `asdict` copies mappings, which a read-only one does not allow."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, tuple | list) else value
