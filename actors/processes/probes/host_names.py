"""Looks up the addresses of host names, which may block: on a few threads of their own."""

from __future__ import annotations

import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from ipaddress import ip_address

from .exchange import Address

MOST_THREADS = 4
KEPT_S = 30.0
"""How long an answer is used again."""

Found = Callable[[tuple[Address, ...], str], None]
"""Gets the addresses, or none and the reason."""

_LOCAL = ("127.0.0.1", "::1")


class HostNames:
    """Looks names up. `find` is for one thread; `post` brings the answers back to it."""

    def __init__(self, post: Callable[[Callable[[], None]], None]) -> None:
        self._post = post
        self._known: dict[tuple[str, int], tuple[float, tuple[Address, ...]]] = {}
        self._asked: dict[tuple[str, int], list[Found]] = {}
        self._waiting: deque[tuple[str, int]] = deque()
        self._threads = 0

    def find(self, host: str, port: int, found: Found) -> None:
        """Call `found` with the addresses of a host: at once if they are known."""
        key = (host, port)
        known = self._known.get(key)
        if (direct := _literal(host, port)) or (known is not None and known[0] > time.monotonic()):
            found(direct or (known[1] if known else ()), "")
        elif key in self._asked:
            self._asked[key].append(found)
        else:
            self._asked[key] = [found]
            self._waiting.append(key)
            self._begin()

    def _begin(self) -> None:
        if not self._waiting or self._threads >= MOST_THREADS:
            return
        key = self._waiting.popleft()
        self._threads += 1
        thread = threading.Thread(target=self._look_up, args=key, name="rekindle-names", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            self._done(key, (), str(error))

    def _look_up(self, host: str, port: int) -> None:
        addresses: tuple[Address, ...] = ()
        reason = ""
        try:
            results = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            addresses = tuple((family, (str(where[0]), port)) for family, _, _, _, where in results)
        except (OSError, UnicodeError) as error:
            reason = str(getattr(error, "strerror", None) or error).lower()
        self._post(lambda: self._done((host, port), addresses, reason))

    def _done(self, key: tuple[str, int], addresses: tuple[Address, ...], reason: str) -> None:
        self._threads -= 1
        if addresses:
            self._known[key] = (time.monotonic() + KEPT_S, addresses)
        for found in self._asked.pop(key, ()):
            found(addresses, reason)
        self._begin()


def _literal(host: str, port: int) -> tuple[Address, ...]:
    """The addresses of a host that needs no lookup."""
    hosts = _LOCAL if host == "localhost" else (host,)
    try:
        return tuple((_family(each), (each, port)) for each in hosts)
    except ValueError:
        return ()


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET if ip_address(host).version == 4 else socket.AF_INET6
