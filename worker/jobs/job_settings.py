"""How a worker serves its queues: what its supervisor says, unless the code says otherwise."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields

ENVIRONMENT = "REKINDLE_JOBS"
"""The variable in which a supervisor tells them, as a JSON object. It holds no secrets."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Which queues, how many jobs at a time, and what follows an exception."""

    queues: tuple[str, ...] = ()
    concurrency: int = 1
    isolate_suspects: bool = False
    error_retries: int = 0
    """How often a job that raised is tried again, where the job itself does not say."""
    retry_delay_s: float = 5.0
    """Before the first of these; it doubles each time."""
    max_retry_delay_s: float = 300.0


def from_environment(environment: Mapping[str, str] | None = None) -> Settings:
    """What the supervisor said; the defaults where it said nothing.

    Raises:
        ValueError: it said something else than a JSON object.
    """
    text = (os.environ if environment is None else environment).get(ENVIRONMENT, "{}")
    given = json.loads(text)
    if not isinstance(given, dict):
        raise ValueError(f"{ENVIRONMENT} is no JSON object")
    known = {field.name for field in fields(Settings)}
    chosen = {name: value for name, value in given.items() if name in known}
    return Settings(**{**chosen, "queues": tuple(chosen.get("queues", ()))})


def retry_delay(settings: Settings, errors: int, max_retries: int | None) -> float | None:
    """How long a job that has now raised for the `errors`-th time waits; None: it is not tried again."""
    allowed = settings.error_retries if max_retries is None else max_retries
    if errors > allowed:
        return None
    # Clamped before the power: a float overflows near 2 ** 1024.
    return float(min(settings.retry_delay_s * 2 ** min(errors - 1, 32), settings.max_retry_delay_s))
