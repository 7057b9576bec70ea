"""Pure: a worker for a bug report, without secrets.

The values of environment variables are left out. Everything that looks like a secret is masked in
the command and in all texts, and so are the secret values of the environment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from enum import Enum

from msgspec.structs import replace

from ..deaths.crash_bundle import Bundle
from ..spec.worker_spec import PythonCall, WorkerSpec
from .redaction import MASK, is_secret, masked, masked_text, masked_words

SHORTEST_SECRET = 4
"""Shorter values occur in any text by chance."""


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
        "env": sorted(spec.env),
        "inherit_env": list(spec.inherit_env),
        "cwd": spec.cwd,
        "user": spec.user,
        "after": list(spec.after),
    }


def without_secrets(bundle: Bundle, env: Mapping[str, str]) -> Bundle:
    """The bundle with the secrets of the worker's environment masked."""
    clean = cleaner(env)
    return replace(
        bundle,
        sentence=clean(bundle.sentence),
        detail=clean(bundle.detail),
        output=tuple((stream, clean(text)) for stream, text in bundle.output),
        last_words=clean(bundle.last_words),
    )


def cleaner(env: Mapping[str, str]) -> Callable[[str], str]:
    """A function that masks the secrets of an environment, and what looks like one, in a text."""
    secrets = tuple(_secrets(env))

    def clean(text: str) -> str:
        for secret in secrets:
            text = text.replace(secret, MASK)
        return masked_text(text)

    return clean


def _secrets(env: Mapping[str, str]) -> Iterator[str]:
    """The longest first, since one may contain another."""
    values = {value for name, value in env.items() if is_secret(name) and len(value) >= SHORTEST_SECRET}
    yield from sorted(values, key=len, reverse=True)


def _settings(policy: object) -> dict[str, object]:
    settings = asdict(policy)  # type: ignore[call-overload]
    return {name: _setting(value) for name, value in settings.items()}


def _setting(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    return masked("", value) if isinstance(value, str | tuple) else value
