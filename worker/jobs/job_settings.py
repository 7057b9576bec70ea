"""How a worker serves its queues: the supervisor's settings, which the worker's code may override."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields

ENVIRONMENT = "REKINDLE_JOBS"
"""The variable with the supervisor's settings, a JSON object. It holds no secrets."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Which queues, how many jobs at a time, and how often to retry after an exception."""

    queues: tuple[str, ...] = ()
    concurrency: int = 1
    isolate_suspects: bool | None = None
    """None: if it executes several jobs at a time."""
    error_retries: int = 0
    """How often a job that raised is retried, unless the job has its own number."""
    retry_delay_s: float = 5.0
    """Before the first retry; it doubles each time."""
    max_retry_delay_s: float = 300.0
    cancel_grace_s: float = 5.0
    """How long a job that should end may take before its process is ended."""

    @property
    def isolates(self) -> bool:
        """Whether a job on which a worker died runs alone."""
        return self.concurrency > 1 if self.isolate_suspects is None else self.isolate_suspects


def from_environment(environment: Mapping[str, str] | None = None) -> Settings:
    """The supervisor's settings, with the defaults for those that are missing.

    Raises:
        ValueError: the variable is not a JSON object.
    """
    text = (os.environ if environment is None else environment).get(ENVIRONMENT, "{}")
    given = json.loads(text)
    if not isinstance(given, dict):
        raise ValueError(f"{ENVIRONMENT} is not a JSON object")
    known = {field.name for field in fields(Settings)}
    chosen = {name: value for name, value in given.items() if name in known}
    return Settings(**{**chosen, "queues": tuple(chosen.get("queues", ()))})


def retry_delay(
    settings: Settings,
    errors: int,
    max_retries: int | None,
    first_ms: int | None = None,
    longest_ms: int | None = None,
) -> float | None:
    """The delay before the retry of a job that raised for the `errors`-th time; None: no retry.

    The job's own numbers win over the settings.
    """
    allowed = settings.error_retries if max_retries is None else max_retries
    if errors > allowed:
        return None
    first_s = settings.retry_delay_s if first_ms is None else first_ms / 1000
    longest_s = settings.max_retry_delay_s if longest_ms is None else longest_ms / 1000
    # Clamped before the power: a float overflows near 2 ** 1024.
    return float(min(first_s * 2 ** min(errors - 1, 32), longest_s))
