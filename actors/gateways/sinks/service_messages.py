"""Pure: an alert in the form that each service for messages expects."""

from __future__ import annotations

from collections.abc import Sequence
from email.message import EmailMessage
from typing import Any

from ...facts.alert import Happening, Severity
from .notification import Notification

_NTFY_PRIORITIES = {Severity.CRITICAL: 5, Severity.WARNING: 3}
_NTFY_TAGS = {Severity.CRITICAL: "rotating_light", Severity.WARNING: "warning"}
_ACTIONS = {Happening.ACKNOWLEDGED: "acknowledge", Happening.RESOLVED: "resolve"}
LONGEST_SUMMARY = 1024
"""Characters that PagerDuty takes."""


def title(notification: Notification) -> str:
    """One line: `critical: worker:tag:0 crashed: killed by SIGKILL`."""
    fields = notification.fields()
    about = fields["component_id"] or notification.alert.queue or notification.alert.breaker or "supervisor"
    word = fields["severity"] if notification.happening is Happening.OPENED else fields["happening"]
    return _one_line(f"{word}: {about} {fields['message']}")


def details(notification: Notification, host: str) -> list[str]:
    """The lines below the title: why, how often, where, and how many messages were withheld."""
    fields, alert = notification.fields(), notification.alert
    lines = [fields["reason"]] if fields["reason"] else []
    if alert.occurrences > 1:
        lines.append(f"It happened {alert.occurrences} times.")
    if notification.withheld:
        lines.append(f"{notification.withheld} messages before this one were withheld by the rate limit.")
    return [*lines, f"Alert {alert.id} on {host}."]


def slack_document(notification: Notification, host: str) -> dict[str, Any]:
    """For an incoming webhook of Slack; Mattermost and Rocket.Chat understand it too."""
    text = "\n".join([f"*{_escaped(title(notification))}*", *map(_escaped, details(notification, host))])
    return {"text": text}


def ntfy_document(notification: Notification, host: str, topic: str) -> dict[str, Any]:
    """For ntfy."""
    resolved = notification.happening is Happening.RESOLVED
    severity = notification.alert.severity
    return {
        "topic": topic,
        "title": title(notification),
        "message": "\n".join(details(notification, host)),
        "priority": 2 if resolved else _NTFY_PRIORITIES.get(severity, 3),
        "tags": ["white_check_mark" if resolved else _NTFY_TAGS.get(severity, "information_source")],
    }


def pagerduty_document(notification: Notification, host: str, key: str) -> dict[str, Any]:
    """For version 2 of PagerDuty's Events API; all changes of one alert are about one incident."""
    alert = notification.alert
    return {
        "routing_key": key,
        "event_action": _ACTIONS.get(notification.happening, "trigger"),
        "dedup_key": f"rekindle/{host}/{alert.opened_at_wall_ms}/{alert.id}",
        "payload": {
            "summary": title(notification)[:LONGEST_SUMMARY],
            "source": host,
            "severity": "critical" if alert.severity is Severity.CRITICAL else "warning",
            "component": alert.component_id or "",
            "class": alert.kind.value,
            "custom_details": dict(notification.fields()),
        },
    }


def mail(notification: Notification, host: str, sender: str, receivers: Sequence[str]) -> EmailMessage:
    """An e-mail; all changes of one alert are in one thread."""
    alert = notification.alert
    message = EmailMessage()
    message["Subject"] = title(notification)[:LONGEST_SUMMARY]
    message["From"] = sender
    message["To"] = ", ".join(receivers)
    message["References"] = f"<rekindle.{alert.opened_at_wall_ms}.{alert.id}@{host}>"
    message.set_content("\n".join([title(notification), "", *details(notification, host)]) + "\n")
    return message


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _escaped(text: str) -> str:
    """A text without Slack's control characters, so that no worker can mention a channel or forge a link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
