"""Pure: where alerts are sent: a command or a webhook."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...facts.alert import TOLD, Happening, Severity
from ...spec.validation import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSettings:
    """Where alerts are sent: to a command or to a webhook."""

    name: str = ""
    """Its name in the file."""
    command: tuple[str, ...] = setting(
        (), "A program and its arguments, with {placeholders}; it gets the alert as JSON on standard input."
    )
    webhook: str = setting("", "An http:// or https:// address; it gets the alert as JSON in a POST.")
    secret_file: Path | None = setting(
        None, "A file with the secret that signs each POST; in a file, relative to that file."
    )
    on: tuple[Happening, ...] = setting(TOLD, "Which changes of an alert are sent.")
    least: Severity = setting(Severity.WARNING, "Alerts below this severity are not sent.")
    per_minute: int = setting(
        10, "How many alerts are sent per minute at most; further ones are counted.", least=1
    )
    timeout_s: float = setting(10.0, "How long sending one alert may take, in seconds.", above=0)
