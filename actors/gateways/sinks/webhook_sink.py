"""A POST for every notice, signed so that its receiver knows who sent it.

The header `Rekindle-Signature: t=SECONDS,v1=HEX` holds the HMAC-SHA256, under the shared secret,
of the seconds, a dot and the body; a receiver that looks at the seconds cannot be fooled with
an old message. `Rekindle-Delivery` stays the same when a message is sent again.
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
    """Posts every notice to an address."""

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
        # An address that was given is the address that is meant: no proxy, no other place.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect())

    def __str__(self) -> str:
        return f"webhook {urlsplit(self._url).hostname}"

    def send(self, notice: Notification) -> None:
        """Send it.

        Raises:
            OSError: nobody took it.
        """
        body = notice.document()
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "rekindle",
            "Rekindle-Delivery": f"{notice.alert.id}-{notice.happening.value}-{notice.alert.occurrences}",
        }
        if self._secret is not None:
            headers["Rekindle-Signature"] = signature(self._secret, int(self._now()), body)
        request = urllib.request.Request(self._url, body, headers, method="POST")
        try:
            with self._opener.open(request, timeout=self._timeout_s):
                pass
        except urllib.error.HTTPError as error:
            error.close()
            raise OSError(f"the receiver answered {error.code}") from None


def signature(secret: bytes, seconds: int, body: bytes) -> str:
    """The header that proves who sent a body."""
    mac = hmac.new(secret, f"{seconds}.".encode() + body, hashlib.sha256)
    return f"t={seconds},v1={mac.hexdigest()}"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is an answer that is no yes."""

    def redirect_request(self, *_args: object, **_more: object) -> None:
        """Follow none."""
