"""Sends a POST for every notification, signed so that the receiver can verify the sender.

The header `Rekindle-Signature: t=SECONDS,v1=HEX` holds the HMAC-SHA256, under the shared secret,
of the seconds, a dot and the body; a receiver that checks the seconds rejects replayed messages.
`Rekindle-Delivery` stays the same when a message is sent again.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from .http_post import post
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
        post(self._url, body, headers, self._timeout_s)


def signature(secret: bytes, seconds: int, body: bytes) -> str:
    """The header that proves the sender of a body."""
    mac = hmac.new(secret, f"{seconds}.".encode() + body, hashlib.sha256)
    return f"t={seconds},v1={mac.hexdigest()}"
