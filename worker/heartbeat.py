"""What the one thread of a worker's runtime does: it beats, it listens, it ends an orphan."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from .channel import Channel

ORPHAN_GRACE_S = 0.5
"""How long the job may go on after the supervisor has gone, before the process group is killed."""

ORPHANED_EXIT = 1


class Heartbeat:
    """Sends a frame every interval and passes on what the supervisor wants.

    It waits on the channel with the next heartbeat as its timeout, so a control line is
    heard at once and an idle worker wakes up once an interval.
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

    def run(self) -> None:
        """Serve the channel; returns when the supervisor is gone."""
        due = time.monotonic()
        while (lines := self._channel.receive(self._next(due) - time.monotonic())) is not None:
            for line in lines:
                self._handle(line)
            now = time.monotonic()
            if now >= self._next(due):
                self._scheduled = None  # first: what is said from here on may need a beat of its own
                self._beat()
            if now >= due:
                # A process that was stopped for a while does not send what it has missed.
                due = max(due + self._interval_s, time.monotonic())

    @property
    def is_scheduled(self) -> bool:
        """Whether a beat is to come soon, with all that is said until then."""
        return self._scheduled is not None

    def beat_by(self, when: float) -> None:
        """Have a beat at this time, if the next one comes later. For any thread."""
        self._scheduled = when
        self._channel.wake()

    def _next(self, due: float) -> float:
        scheduled = self._scheduled
        return due if scheduled is None else min(due, scheduled)

    def _handle(self, line: object) -> None:
        if isinstance(line, dict):
            self._on_control(line)


def end_orphan() -> None:
    """Give the job its grace; then kill this process, and all of its group if it leads one."""
    import signal

    time.sleep(ORPHAN_GRACE_S)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(ORPHANED_EXIT)
