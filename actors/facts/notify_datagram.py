"""What a worker says over its notify socket: datagrams of `KEY=VALUE` lines, as systemd defines them.

A worker's bytes are untrusted: a line that is not understood is left out, a text is cut and printable.
"""

from __future__ import annotations

import msgspec

from rekindle.worker.plain_text import printable

MOST_BYTES = 4096
"""A longer datagram is refused, as systemd does."""
LONGEST_STATUS = 200
LONGEST_S = 7 * 24 * 3600.0
"""The longest time that a worker may ask for."""


class NotifyDatagram(msgspec.Struct, frozen=True):
    """One datagram."""

    is_ready: bool = False
    status: str | None = None
    """What it says of itself, for people."""
    is_alive: bool = False
    """WATCHDOG=1"""
    gives_up: bool = False
    """WATCHDOG=trigger: it asks to be restarted."""
    watchdog_s: float | None = None
    """The new interval of its watchdog; 0 turns it off."""
    extend_s: float | None = None
    """How much longer its start may take, from now."""
    is_stopping: bool = False
    main_pid: str = ""
    """The process that it names as its main process."""


def parse(data: bytes) -> NotifyDatagram:
    """What a datagram says; of several lines with the same key the last one counts."""
    lines = (line.partition("=") for line in data.decode("utf-8", "replace").splitlines())
    fields = {key: value for key, equals, value in lines if equals}
    status = fields.get("STATUS")
    return NotifyDatagram(
        is_ready=fields.get("READY") == "1",
        status=None if status is None else printable(status.strip()[:LONGEST_STATUS]),
        is_alive=fields.get("WATCHDOG") == "1",
        gives_up=fields.get("WATCHDOG") == "trigger",
        watchdog_s=_seconds(fields.get("WATCHDOG_USEC")),
        extend_s=_seconds(fields.get("EXTEND_TIMEOUT_USEC")),
        is_stopping=fields.get("STOPPING") == "1",
        main_pid=printable(fields.get("MAINPID", "")[:20]),
    )


def _seconds(microseconds: str | None) -> float | None:
    """The time in seconds; None if it is not a time."""
    if microseconds is None or not (microseconds.isascii() and microseconds.isdigit()):
        return None
    return min(int(microseconds[:20]) / 1e6, LONGEST_S)
