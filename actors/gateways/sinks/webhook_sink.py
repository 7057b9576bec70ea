"""Sends a POST for every notification, signed so that the receiver can verify the sender.

The header `Rekindle-Signature: t=SECONDS,v1=HEX` holds the HMAC-SHA256, under the shared secret,
of the seconds, a dot and the body; a receiver that checks the seconds rejects replayed messages.
`Rekindle-Delivery` stays the same when a message is sent again.
"""

from __future__ import annotations

import hashlib
import hmac
import time
import urllib.error
import urllib.request
from collections.abc import Callable
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
        # Only the configured URL receives alerts: no proxy, no redirect.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect())

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
        request = urllib.request.Request(self._url, body, headers, method="POST")
        try:
            with self._opener.open(request, timeout=self._timeout_s):
                pass
        except urllib.error.HTTPError as error:
            error.close()
            raise OSError(f"the receiver replied with status {error.code}") from None


def signature(secret: bytes, seconds: int, body: bytes) -> str:
    """The header that proves the sender of a body."""
    mac = hmac.new(secret, f"{seconds}.".encode() + body, hashlib.sha256)
    return f"t={seconds},v1={mac.hexdigest()}"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Treats a redirect as a failure."""

    def redirect_request(self, *_args: object, **_more: object) -> None:
        """Do not follow it."""
