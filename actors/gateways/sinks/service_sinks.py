"""Sends alerts to services for messages: Slack, ntfy, PagerDuty, e-mail."""

from __future__ import annotations

import json
import smtplib
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import unquote, urlsplit

from .http_post import post
from .notification import Notification
from .service_messages import mail, ntfy_document, pagerduty_document, slack_document

TIMEOUT_S = 10.0
SUBMISSION_PORT = 587
TLS_PORT = 465


class SlackSink:
    """An incoming webhook of Slack, or of a service that understands the same."""

    def __init__(self, url: str, timeout_s: float = TIMEOUT_S) -> None:
        self._url = url
        self._timeout_s = timeout_s

    def __str__(self) -> str:
        return "slack"

    def send(self, notification: Notification) -> None:
        """Send it, or raise `OSError`."""
        _post_json(self._url, slack_document(notification, _host()), {}, self._timeout_s)


class NtfySink:
    """A topic of an ntfy server: `https://ntfy.sh/our-alerts`."""

    def __init__(self, url: str, token: str | None, timeout_s: float = TIMEOUT_S) -> None:
        server, _, self._topic = url.rpartition("/")
        self._server = server + "/"
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._timeout_s = timeout_s

    def __str__(self) -> str:
        return f"ntfy {urlsplit(self._server).hostname}"

    def send(self, notification: Notification) -> None:
        """Send it, or raise `OSError`."""
        document = ntfy_document(notification, _host(), self._topic)
        _post_json(self._server, document, self._headers, self._timeout_s)


class PagerDutySink:
    """An integration of PagerDuty's Events API; the key names the service there."""

    def __init__(self, server: str, key: str, timeout_s: float = TIMEOUT_S) -> None:
        self._url = server.rstrip("/") + "/v2/enqueue"
        self._key = key
        self._timeout_s = timeout_s

    def __str__(self) -> str:
        return "pagerduty"

    def send(self, notification: Notification) -> None:
        """Send it, or raise `OSError`."""
        document = pagerduty_document(notification, _host(), self._key)
        _post_json(self._url, document, {}, self._timeout_s)


class EmailSink:
    """A mail server: `smtp://USER@HOST:587` (STARTTLS), `smtps://USER@HOST` (TLS from the start)."""

    def __init__(
        self,
        server: str,
        sender: str,
        receivers: Sequence[str],
        password: str | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._server = urlsplit(server)
        self._sender = sender
        self._receivers = tuple(receivers)
        self._password = password
        self._timeout_s = timeout_s

    def __str__(self) -> str:
        return f"email {self._server.hostname}"

    def send(self, notification: Notification) -> None:
        """Send it.

        Raises:
            OSError: the server did not accept it, or a password would be sent without encryption.
        """
        message = mail(notification, _host(), self._sender, self._receivers)
        connection = self._connected()
        try:
            if self._password is not None:
                connection.login(unquote(self._server.username or ""), self._password)
            connection.send_message(message, self._sender, list(self._receivers))
        finally:
            with suppress(OSError):  # the mail is taken: a bad farewell must not send it again
                connection.quit()
            connection.close()

    def _connected(self) -> smtplib.SMTP:
        host, encrypted = self._server.hostname or "", self._server.scheme == "smtps"
        if encrypted:
            context = ssl.create_default_context()
            port = self._server.port or TLS_PORT
            return smtplib.SMTP_SSL(host, port, timeout=self._timeout_s, context=context)
        connection = smtplib.SMTP(host, self._server.port or SUBMISSION_PORT, timeout=self._timeout_s)
        try:
            connection.ehlo()
            if connection.has_extn("starttls"):
                connection.starttls(context=ssl.create_default_context())
            elif self._password is not None:
                raise OSError("the mail server offers no encryption (STARTTLS), so the password was not sent")
        except BaseException:
            connection.close()
            raise
        return connection


def _post_json(url: str, document: dict[str, Any], headers: dict[str, str], timeout_s: float) -> None:
    whole = {"Content-Type": "application/json", "User-Agent": "rekindle", **headers}
    post(url, json.dumps(document).encode(), whole, timeout_s)


def _host() -> str:
    return socket.gethostname()
