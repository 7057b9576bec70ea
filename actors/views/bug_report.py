"""Pure: a worker for a bug report, with nothing secret in it.

The values of environment variables are never told, words of the command that look like secrets
are masked, in the texts as well, and where a secret of the environment stands in one it is taken
out again.
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
"""A shorter value stands in any text by chance."""


def declared(spec: WorkerSpec) -> dict[str, object]:
    """How a worker is declared, as far as it may be told."""
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
    """The bundle with the secrets of the worker's environment taken out of its texts."""
    clean = cleaner(env)
    return replace(
        bundle,
        sentence=clean(bundle.sentence),
        detail=clean(bundle.detail),
        output=tuple((stream, clean(text)) for stream, text in bundle.output),
        last_words=clean(bundle.last_words),
    )


def cleaner(env: Mapping[str, str]) -> Callable[[str], str]:
    """What takes the secrets of that environment, and what looks like one, out of a text."""
    secrets = tuple(_secrets(env))

    def clean(text: str) -> str:
        for secret in secrets:
            text = text.replace(secret, MASK)
        return masked_text(text)

    return clean


def _secrets(env: Mapping[str, str]) -> Iterator[str]:
    """The longest first: one may be a part of another."""
    values = {value for name, value in env.items() if is_secret(name) and len(value) >= SHORTEST_SECRET}
    yield from sorted(values, key=len, reverse=True)


def _settings(policy: object) -> dict[str, object]:
    settings = asdict(policy)  # type: ignore[call-overload]
    return {
        name: value.value if isinstance(value, Enum) else _told(value) for name, value in settings.items()
    }


def _told(value: object) -> object:
    """A setting; only words can hold a secret."""
    return masked("", value) if isinstance(value, str | tuple) else value
