"""Posts a body to the one address that was configured: no proxy, no redirect, within a time for all of it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit


def post(url: str, body: bytes, headers: Mapping[str, str], timeout_s: float) -> None:
    """Send the body and read the status of the answer.

    Raises:
        OSError: the receiver did not accept it.
    """
    parts = urlsplit(url)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    reason = ""
    connection = kind(parts.hostname or "", parts.port, timeout=timeout_s)
    deadline = time.monotonic() + timeout_s
    try:
        connection.connect()
        # The timeout of a socket is for each read: a receiver that drips its answer would hold the sink.
        timer = threading.Timer(max(0.0, deadline - time.monotonic()), _cut, (connection.sock,))
        timer.daemon = True
        timer.start()
        try:
            where = (parts.path or "/") + (parts.query and f"?{parts.query}")
            connection.request("POST", where, body, dict(headers))
            status = connection.getresponse().status
        finally:
            timer.cancel()
    except HTTPException as error:
        status, reason = 0, f"the receiver sent no valid reply: {type(error).__name__}"
    finally:
        connection.close()
    if time.monotonic() >= deadline:
        raise TimeoutError(f"the receiver did not reply within {timeout_s:g} s")
    if status == 0:
        raise OSError(reason)
    if not 200 <= status < 300:
        raise OSError(f"the receiver replied with status {status}")


def _cut(connection: socket.socket) -> None:
    with suppress(OSError):
        # Not the method of a TLS socket, which would change it under the thread that reads.
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
