"""Notifies systemd: datagrams to the socket in NOTIFY_SOCKET, or nothing without one."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import suppress

UPGRADE_S = 300.0
"""When an upgrade is over at the latest: a minute to load the program (`rekindle/__main__.py`), another to
become ready (`upgrade/left.py`), and the same for the former program that returns, with a margin."""


class Notifier:
    """Sends the state of the service to the service manager that started it, if there is one."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        address = environment.get("NOTIFY_SOCKET", "")
        # @ stands for the NUL byte at the start of an abstract address.
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self.watchdog_s = _watchdog(environment)
        """The period in which the watchdog expects a keep-alive; None without a watchdog."""

    def ready(self, status: str, *, again: bool = False) -> None:
        """The workers are started; `again`: after an upgrade, in the same process."""
        period = "" if self.watchdog_s is None else f"\nWATCHDOG_USEC={_usec(self.watchdog_s)}\nWATCHDOG=1"
        more = f"\nMAINPID={os.getpid()}{period}" if again else ""
        self._send(f"READY=1\nSTATUS={_line(status)}{more}")

    def upgrading(self, monotonic_us: int) -> None:
        """Another program replaces this one in the same process; `ready` reports the end.

        Until then no keep-alive is sent. A watchdog with a shorter period would kill the supervisor, with all
        workers, before the former program could return.
        """
        self.reloading(monotonic_us)
        if self.watchdog_s is not None:
            self._send(f"WATCHDOG_USEC={_usec(max(UPGRADE_S, self.watchdog_s))}\nWATCHDOG=1")

    def status(self, text: str) -> None:
        """Set the status line that `systemctl status` shows."""
        self._send(f"STATUS={_line(text)}")

    def alive(self) -> None:
        """Send a keep-alive to the watchdog."""
        self._send("WATCHDOG=1")

    def reloading(self, monotonic_us: int) -> None:
        """A reload has started; `ready` reports its end."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={monotonic_us}")

    def stopping(self) -> None:
        """The service is stopping."""
        self._send("STOPPING=1\nSTATUS=stopping the workers")

    def _send(self, text: str) -> None:
        if not self._address:
            return
        with (
            suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock,
        ):
            sock.settimeout(1.0)
            sock.sendto(text.encode(), self._address)


def _watchdog(environment: Mapping[str, str]) -> float | None:
    """The watchdog's period, if the variables are for this process."""
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    try:
        period = int(environment.get("WATCHDOG_USEC", ""))
    except ValueError:
        return None
    return period / 1e6 if period > 0 else None


def _usec(seconds: float) -> int:
    return round(seconds * 1e6)


def _line(text: str) -> str:
    return text.replace("\n", " ")
