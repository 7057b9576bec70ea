"""The thread of a worker's runtime: it sends heartbeats, receives control lines and ends an orphan."""

from __future__ import annotations

import _thread
import os
import threading
import time
from collections.abc import Callable

from .channel import Channel

ORPHAN_GRACE_S = 0.5
"""How long the job may continue after the supervisor has gone, before the process group is killed."""

ORPHANED_EXIT = 1


class Heartbeat:
    """Sends a frame every interval and passes on the supervisor's control lines.

    It waits on the channel with the next heartbeat as its timeout, so a control line is
    handled at once and an idle worker wakes up once an interval.
    """

    def __init__(
        self,
        channel: Channel,
        interval_s: float,
        *,
        beat: Callable[[], None],
        on_control: Callable[[dict[str, object]], None],
    ) -> None:
        self._channel = channel
        self._interval_s = interval_s
        self._beat = beat
        self._on_control = on_control
        self._scheduled: float | None = None
        self._hearing = threading.Lock()

    def run(self) -> None:
        """Serve the channel; returns when the supervisor is gone."""
        due = time.monotonic()
        while True:
            self._channel.wait(self._next(due) - time.monotonic())
            if not self.hear():
                return
            now = time.monotonic()
            if now >= self._next(due):
                self._scheduled = None  # first: a report from here on may need another beat
                self._beat()
            if now >= due:
                # A process that was suspended for a while does not send the beats that it missed.
                due = max(due + self._interval_s, time.monotonic())

    def hear(self) -> bool:
        """Handle the control lines that have arrived; False once the supervisor is gone.

        Any thread may call it, and what arrived before is handled when it returns.
        """
        with self._hearing:
            lines = self._channel.receive()
            for line in lines or ():
                if isinstance(line, dict):
                    self._on_control(line)
        return lines is not None

    @property
    def is_scheduled(self) -> bool:
        """Whether an early beat is scheduled, which includes every report until then."""
        return self._scheduled is not None

    def beat_by(self, when: float) -> None:
        """Schedule a beat for this time, if the next one comes later. May be called from any thread."""
        self._scheduled = when
        self._channel.wake()

    def _next(self, due: float) -> float:
        scheduled = self._scheduled
        return due if scheduled is None else min(due, scheduled)


class SpareThread:
    """A thread that waits for what it is to do. A standby has one before it knows which worker it becomes."""

    def __init__(self) -> None:
        self._call: Callable[[], None] | None = None
        self._given = threading.Lock()
        self._given.acquire()
        _start_thread(self._run)

    def give(self, call: Callable[[], None]) -> None:
        """Have the call made."""
        self._call = call
        self._given.release()

    def _run(self) -> None:
        self._given.acquire()
        if self._call is not None:
            self._call()


_spare: SpareThread | None = None


def keep_spare_thread() -> None:
    """Start the thread of the heartbeat before there is one."""
    global _spare
    _spare = SpareThread()


def call_on_thread(call: Callable[[], None]) -> None:
    """Make the call on the spare thread, or on a new one."""
    global _spare
    spare, _spare = _spare, None
    if spare is None:
        _start_thread(call)
    else:
        spare.give(call)


def _start_thread(call: Callable[[], None]) -> None:
    # Not `threading.Thread`, which waits until the thread runs: half a millisecond of a warm start.
    _thread.start_new_thread(_named, (call,))


def _named(call: Callable[[], None]) -> None:
    threading.current_thread().name = "rekindle-heartbeat"
    call()


def end_orphan() -> None:
    """Wait for the grace period, then kill this process, and its whole group if it leads one."""
    import signal

    time.sleep(ORPHAN_GRACE_S)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(ORPHANED_EXIT)
