"""Sends a POST for every notification, signed so that the receiver can verify the sender.

The header `Rekindle-Signature: t=SECONDS,v1=HEX` holds the HMAC-SHA256, under the shared secret,
of the seconds, a dot and the body; a receiver that checks the seconds rejects replayed messages.
`Rekindle-Delivery` stays the same when a message is sent again.
"""

from __future__ import annotations

import hashlib
import hmac
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from .notification import Notification

TIMEOUT_S = 5.0


class WebhookSink:
    """Posts every notification to a URL."""

    def __init__(
        self,
        url: str,
        secret: bytes | None = None,
        timeout_s: float = TIMEOUT_S,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._url = url
        self._secret = secret
        self._timeout_s = timeout_s
        self._now = now

    def __str__(self) -> str:
        return f"webhook {urlsplit(self._url).hostname}"

    def send(self, notification: Notification) -> None:
        """Send it.

        Raises:
            OSError: the receiver did not accept it.
        """
        body, alert = notification.document(), notification.alert
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "rekindle",
            "Rekindle-Delivery": f"{alert.id}-{notification.happening.value}-{alert.occurrences}",
        }
        if self._secret is not None:
            headers["Rekindle-Signature"] = signature(self._secret, int(self._now()), body)
        self._post(body, headers)

    def _post(self, body: bytes, headers: dict[str, str]) -> None:
        """Only the configured URL receives alerts: no proxy, no redirect."""
        parts = urlsplit(self._url)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        reason = ""
        connection = kind(parts.hostname or "", parts.port, timeout=self._timeout_s)
        deadline = time.monotonic() + self._timeout_s
        try:
            connection.connect()
            # The timeout of a socket is for each read: a receiver that drips its answer would hold the sink.
            timer = threading.Timer(max(0.0, deadline - time.monotonic()), _cut, (connection.sock,))
            timer.daemon = True
            timer.start()
            try:
                where = (parts.path or "/") + (parts.query and f"?{parts.query}")
                connection.request("POST", where, body, headers)
                status = connection.getresponse().status
            finally:
                timer.cancel()
        except HTTPException as error:
            status, reason = 0, f"the receiver sent no valid reply: {type(error).__name__}"
        finally:
            connection.close()
        if time.monotonic() >= deadline:
            raise TimeoutError(f"the receiver did not reply within {self._timeout_s:g} s")
        if status == 0:
            raise OSError(reason)
        if not 200 <= status < 300:
            raise OSError(f"the receiver replied with status {status}")


def signature(secret: bytes, seconds: int, body: bytes) -> str:
    """The header that proves the sender of a body."""
    mac = hmac.new(secret, f"{seconds}.".encode() + body, hashlib.sha256)
    return f"t={seconds},v1={mac.hexdigest()}"


def _cut(connection: socket.socket) -> None:
    with suppress(OSError):
        # Not the method of a TLS socket, which would change it under the thread that reads.
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
