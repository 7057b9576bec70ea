"""Pure: where alerts are sent: a command, a webhook, or a service for messages."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...facts.alert import TOLD, Happening, Severity
from ...spec.validation import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSettings:
    """Where alerts are sent: to a command, a webhook, or a service for messages."""

    name: str = ""
    """Its name in the file."""
    command: tuple[str, ...] = setting(
        (), "A program and its arguments, with {placeholders}; it gets the alert as JSON on standard input."
    )
    webhook: str = setting("", "An http:// or https:// address; it gets the alert as JSON in a POST.")
    slack: bool = setting(
        False, "An incoming webhook of Slack or Mattermost; secret_file has its whole address."
    )
    ntfy: str = setting("", "A topic of ntfy, https://SERVER/TOPIC; secret_file has an access token, if any.")
    pagerduty: str = setting(
        "",
        "PagerDuty, https://events.pagerduty.com or https://events.eu.pagerduty.com; secret_file has the "
        "integration key (Events API v2).",
    )
    email: str = setting(
        "",
        "A mail server, smtp://USER@HOST:587 (STARTTLS) or smtps://USER@HOST; secret_file has the password.",
    )
    sender: str = setting("", "With email: the address that the mails are from.")
    to: tuple[str, ...] = setting((), "With email: the addresses that get them.")
    secret_file: Path | None = setting(
        None,
        "A file with the secret of the receiver: for a webhook the one that signs each POST; in a file, "
        "relative to that file.",
    )
    on: tuple[Happening, ...] = setting(TOLD, "Which changes of an alert are sent.")
    least: Severity = setting(Severity.WARNING, "Alerts below this severity are not sent.")
    per_minute: int = setting(
        10, "How many alerts are sent per minute at most; further ones are counted.", least=1
    )
    timeout_s: float = setting(10.0, "How long sending one alert may take, in seconds.", above=0)
