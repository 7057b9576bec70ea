"""Pure: whether a worker that promised keep-alives over its notify socket keeps sending them.

The time runs from the moment in which the worker is ready. A worker that says that it is stopping sends
no more keep-alives; it has the time of its stop policy to end.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from ...deaths.death import Cause
from ...facts.notify_datagram import NotifyDatagram
from ...spec.policies.ready_policy import ReadyPolicy


class Watchdog(msgspec.Struct, frozen=True):
    """The keep-alives of one incarnation."""

    every_s: float | None = None
    """How often one must come; None: never."""
    fed: float | None = None
    """When the last one came, or when the worker became ready; None before that."""
    stop_s: float = 0.0
    """How long a worker that says that it is stopping may take."""
    stopping: float | None = None
    """When it first said so."""


NO_WATCHDOG = Watchdog()


class MissedKeepAlive(msgspec.Struct, frozen=True):
    """A worker that must be ended, and why."""

    cause: Cause
    words: str


def watchdog_of(ready: ReadyPolicy | None, stop_s: float) -> Watchdog:
    """The watchdog of a new incarnation."""
    return NO_WATCHDOG if ready is None or not ready.notify else Watchdog(ready.watchdog_s, stop_s=stop_s)


def after_notice(watchdog: Watchdog, notice: NotifyDatagram, now: float) -> Watchdog:
    """The watchdog after a datagram."""
    if notice.watchdog_s is not None:
        watchdog = replace(watchdog, every_s=notice.watchdog_s or None)
    if watchdog.fed is not None and (notice.is_alive or notice.is_ready or notice.watchdog_s is not None):
        watchdog = replace(watchdog, fed=now)
    if notice.is_stopping and watchdog.stopping is None:
        watchdog = replace(watchdog, stopping=now)
    return watchdog


def begun(watchdog: Watchdog, now: float) -> Watchdog:
    """The worker is ready."""
    return watchdog if watchdog.fed is not None else replace(watchdog, fed=now)


def granted(watchdog: Watchdog, now: float) -> Watchdog:
    """The monitor was away or the worker paused: start the time over."""
    fed = None if watchdog.fed is None else now
    return replace(watchdog, fed=fed, stopping=None if watchdog.stopping is None else now)


def deadline(watchdog: Watchdog) -> float | None:
    """By when the worker must be heard from, or gone; None: never."""
    if watchdog.stopping is not None:
        return watchdog.stopping + watchdog.stop_s
    if watchdog.every_s is None or watchdog.fed is None:
        return None
    return watchdog.fed + watchdog.every_s


def missed(watchdog: Watchdog, now: float) -> MissedKeepAlive | None:
    """Why the worker must be ended, if it must."""
    due = deadline(watchdog)
    if due is None or now < due:
        return None
    if watchdog.stopping is not None:
        words = f"it said STOPPING=1 and did not end within {watchdog.stop_s:g} s"
        return MissedKeepAlive(Cause.NO_PROGRESS, words)
    assert watchdog.fed is not None
    words = f"no WATCHDOG=1 for {now - watchdog.fed:.3g} s (limit {watchdog.every_s:g} s)"
    return MissedKeepAlive(Cause.HEARTBEAT_LOST, words)
