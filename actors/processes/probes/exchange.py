"""One question over a socket, as a generator that yields what it waits for; nothing here blocks.

The loop of the pool resumes it when the socket is ready, and closes it when its time is over.
"""

from __future__ import annotations

import errno
import os
import re
import select
import socket
from collections.abc import Generator, Sequence
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from rekindle.worker.plain_text import printable

from ...spec.probe import HttpProbe

if TYPE_CHECKING:
    from ssl import SSLContext

READ, WRITE = select.EPOLLIN, select.EPOLLOUT

Waits = tuple[tuple[int, int], ...]
"""Descriptors, and for what each is waited."""

Steps = Generator[Waits, None, str]
"""Returns the answer in words, or raises `BadAnswer`."""

Address = tuple[socket.AddressFamily, tuple[str, int]]

MOST_BYTES = 64 * 1024
"""An answer beyond this is not read."""

_STATUS = re.compile(rb"HTTP/1\.[0-9] (?P<code>[1-5][0-9]{2})(?: (?P<reason>[^\r\n]{0,80}))?[^\r\n]*\r?\n")
_LENGTH = re.compile(rb"\r?\ncontent-length:[ \t]*(?P<length>[0-9]{1,12})[ \t]*\r?\n", re.IGNORECASE)
_END = re.compile(rb"\r?\n\r?\n")
_WITHOUT_BODY = frozenset((204, 304))


class BadAnswer(Exception):  # noqa: N818  # not an error: the answer to a question
    """The worker is not well, in words."""


class OverdueError(Exception):
    """Thrown into steps whose time is over; they clean up."""


class ExchangeProgress:
    """How far an exchange came, for the words of a timeout."""

    def __init__(self) -> None:
        self.words = "no connection"


def http_port(parts: SplitResult) -> int:
    """The port of an address."""
    return parts.port or (443 if parts.scheme == "https" else 80)


def connection(addresses: Sequence[Address], progress: ExchangeProgress) -> Steps:
    """Connect and close again."""
    with (yield from _connected(addresses)):
        progress.words = "connected"
        return "connected"


def http_get(probe: HttpProbe, addresses: Sequence[Address], progress: ExchangeProgress) -> Steps:
    """Send the request, and judge the answer by its code."""
    parts = urlsplit(probe.url)
    plain = yield from _connected(addresses)
    with plain:
        progress.words = "no answer"
        sock = plain
        if parts.scheme == "https":
            sock = tls_context().wrap_socket(
                plain, server_hostname=parts.hostname, do_handshake_on_connect=False
            )
        with sock:
            if parts.scheme == "https":
                yield from _retried(sock, sock.do_handshake)  # type: ignore[attr-defined]
            yield from _retried(sock, lambda: sock.sendall(_request(probe, parts)))
            return (yield from _judged(probe, sock, progress))


@cache
def tls_context() -> SSLContext:
    """A probe asks whether the worker answers, not who it is: certificates are not verified."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _connected(addresses: Sequence[Address]) -> Generator[Waits, None, socket.socket]:
    """A connection to the first of the addresses that accepts one."""
    refused = OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
    for family, where in addresses:
        sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            error = sock.connect_ex(where)
            while error == errno.EINPROGRESS:
                yield ((sock.fileno(), WRITE),)
                error = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) or _unconnected(sock)
            # The kernel may choose the port that nothing listens on as our own, and connect us to ourselves.
            if not error and sock.getsockname() == sock.getpeername():
                error = errno.ECONNREFUSED
        except BaseException:
            sock.close()
            raise
        if not error:
            return sock
        sock.close()
        refused = OSError(error, os.strerror(error))
    raise BadAnswer(str(refused.strerror).lower())


def _unconnected(sock: socket.socket) -> int:
    """Whether the connection is still being made: the loop may have reported a former descriptor."""
    try:
        sock.getpeername()
    except OSError:
        return errno.EINPROGRESS
    return 0


def _retried(sock: socket.socket, call: object) -> Generator[Waits, None, object]:
    """Make a call of a socket that is not ready yet, again and again."""
    assert callable(call)
    while True:
        try:
            return call()
        except OSError as error:
            if (waits := _wanted(error)) is None:
                raise
            yield ((sock.fileno(), waits),)


def _wanted(error: OSError) -> int | None:
    """What a socket waits for; None if the error is a real one. TLS may have to write before it can read."""
    name = type(error).__name__
    if isinstance(error, BlockingIOError) or name == "SSLWantReadError":
        return READ
    return WRITE if name == "SSLWantWriteError" else None


def _request(probe: HttpProbe, parts: SplitResult) -> bytes:
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    headers = {
        "host": ("Host", f"{host}:{parts.port}" if parts.port else f"{host}"),
        "user-agent": ("User-Agent", "rekindle-probe"),
        "accept": ("Accept", "*/*"),
    }
    headers |= {name.lower(): (name, value) for name, value in probe.headers.items()}
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    lines = (f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.values()))
    return "\r\n".join((*lines, "Connection: close", "", "")).encode("latin-1")


def _judged(probe: HttpProbe, sock: socket.socket, progress: ExchangeProgress) -> Steps:
    received = bytearray()
    while not _is_whole(received):
        data = yield from _retried(sock, lambda: sock.recv(MOST_BYTES))
        assert isinstance(data, bytes)
        if not data:
            break
        received += data
        if (found := _STATUS.match(received)) is not None:
            progress.words = f"answered {_said(found)}, but the answer did not end"
    found = _STATUS.match(received)
    if found is None and not received:
        raise BadAnswer("closed the connection without an answer")
    if found is None:
        raise BadAnswer(f"the answer is not HTTP/1.1: {printable(received[:40].decode('latin-1'))}")
    if not probe.accepts(int(found["code"])):
        raise BadAnswer(f"answered {_said(found)}{_body(received)}")
    return f"answered {_said(found)}"


def _is_whole(received: bytearray) -> bool:
    """Whether the answer is complete, or long enough. Interim answers (1xx) are removed."""
    while (head := _END.search(received)) is not None:
        found = _STATUS.match(received)
        if found is None or len(received) >= MOST_BYTES:
            return True
        if found["code"].startswith(b"1") and found["code"] != b"101":
            del received[: head.end()]
            continue
        length = _LENGTH.search(received, 0, head.end())
        if int(found["code"]) in _WITHOUT_BODY:
            return True
        return length is not None and len(received) >= head.end() + int(length["length"])
    return len(received) >= MOST_BYTES


def _said(found: re.Match[bytes]) -> str:
    reason = printable((found["reason"] or b"").decode("latin-1")).strip()
    return f"{found['code'].decode()} {reason}".strip()


def _body(received: bytearray) -> str:
    """The first line of a body, which often says what is wrong."""
    head = _END.search(received)
    body = b"" if head is None else bytes(received[head.end() : head.end() + 400]).strip()
    line = body.decode("utf-8", "replace").splitlines()[0].strip() if body else ""
    return "" if not line or line.startswith("<") else f": {printable(line[:120])}"
